"""The part of Go's template language that the chart uses. That the results are Helm's is compared in test_chart."""

from typing import Any

import pytest

from lamina.install.templates import TemplateError, render, to_json

DATA = {
    "Values": {"on": True, "off": False, "name": "a b", "many": 3, "list": ["x", "y"], "empty": {}},
    "Capabilities": {"KubeVersion": {"Version": "v1.29.3"}},
    "Files": {"Get": {"file.yaml": "a: 1"}.__getitem__},
}


def rendered(text: str) -> str:
    return render({"one": text}, DATA)["one"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain {text}", "plain {text}"),
        ("{{ .Values.name }}-{{ .Values.many }}", "a b-3"),
        ("{{ .Values.name | toJson }}", '"a b"'),
        ("a\n  {{- .Values.many }}\nb", "a3\nb"),
        ("a\n{{ .Values.many -}}  \n b", "a\n3b"),
        ("a{{/* left out */}}b", "ab"),
        ("a {{- /* left\n out */ -}} b", "ab"),
        ("{{ if .Values.on }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ if .Values.off }}yes{{ else }}no{{ end }}", "no"),
        ("{{ if .Values.empty }}yes{{ end }}", ""),
        ("{{ if .Values.on }}{{ if .Values.off }}1{{ else }}2{{ end }}3{{ end }}", "23"),
        ("{{ if not .Values.off }}yes{{ end }}", "yes"),
        ("{{ if or .Values.off .Values.on }}yes{{ end }}", "yes"),
        ("{{ range .Values.list }}[{{ . }}{{ $.Values.many }}]{{ end }}", "[x3][y3]"),
        ('{{ range list "a" "b" }}{{ . }}{{ end }}', "ab"),
        ('{{ .Values.empty | default "d" }}', "d"),
        ('{{ .Values.name | default "d" }}', "a b"),
        ('{{ print "--n=" .Values.many (print "|" .Values.name) | toJson }}', '"--n=3|a b"'),
        ('{{ define "t" }}<{{ . }}>{{ end }}{{ include "t" .Values.name }}{{ include "t" "x" }}', "<a b><x>"),
        ('{{ .Files.Get "file.yaml" | fromYaml | toJson }}', '{"a":1}'),
        ('{{ regexFind "^v[0-9]+" .Capabilities.KubeVersion.Version }}', "v1"),
        ('{{ if semverCompare ">=1.29-0" .Capabilities.KubeVersion.Version }}new{{ end }}', "new"),
        ('{{ if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}new{{ end }}', ""),
        ('{{ "a" | toJson | sha256sum }}', "ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c"),
        ("{a: {{ .Values.many }}}", "{a: 3}"),
        ('{{ append (get (dict "a" (list 1)) "a") 2 | toJson }}{{ get (dict) "a" }}', "[1,2]"),
        ('{{ index (list "a" "b") 1 }}', "b"),
        ('{{ "1+2" | replace "+" "_" }}', "1_2"),
        ('{{ merge (dict) (dict "a" 1 "b" 2) (dict "b" 3 "c" 4) | toJson }}', '{"a":1,"b":2,"c":4}'),
    ],
)
def test_what_templates_become(text: str, expected: str) -> None:
    assert rendered(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ lower .Values.name }}",
        "{{ $x := .Values.name }}",
        "{{ .Values.empty }}",
        "{{ .Values.on }}",
        "{{ if .Values.on }}",
        '{{ semverCompare "<1.30" .Capabilities.KubeVersion.Version }}',
    ],
)
def test_what_is_not_known_here_is_an_error(text: str) -> None:
    with pytest.raises(TemplateError):
        rendered(text)


def test_a_value_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError, match="nmae"):
        rendered("{{ .Values.nmae }}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1.0, "a": [True, None, 1.5]}, '{"a":[true,null,1.5],"b":1}'),
        ("<ü&>", '"\\u003cü\\u0026\\u003e"'),
        ("\x7f\u2028\n", '"\\u007f\\u2028\\n"'),
    ],
)
def test_json_is_as_go_writes_it(value: Any, expected: str) -> None:
    assert to_json(value) == expected
