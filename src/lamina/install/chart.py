"""The description as a Helm chart, for any values and version.

Values that a user sets are inserted as JSON, which is YAML too, so that no template has to know their indentation. The
CRDs are in `crds`, which Helm creates first and never changes or removes; the controller keeps them up to date.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from lamina import __version__
from lamina.core.component_names import NAMESPACE
from lamina.install.names import COMPONENT
from lamina.install.notes import NOTES
from lamina.install.objects import definitions, objects
from lamina.install.telemetry.objects import files as telemetry_files
from lamina.install.terms import Each, Term, When
from lamina.install.values import Image, Values, image_problem, plain
from lamina.install.versions import OLDEST
from lamina.install.yaml_text import yaml_text

_UNBOUNDED = 10_000
_DESCRIPTION = "GPU sharing for Kubernetes"
_NAMESPACE_CHECK = (
    f'{{{{- if ne .Release.Namespace "{NAMESPACE}" }}}}'
    f'{{{{ fail "Lamina needs the namespace {NAMESPACE}; use --namespace {NAMESPACE} --create-namespace" }}}}'
    "{{- end }}\n"
)
_IMAGE_CHECK = (
    f'{{{{- if eq .Values.image.repository "{Image().repository}" }}}}'
    f'{{{{ fail "{image_problem()}" }}}}'
    "{{- end }}\n"
)


def chart() -> dict[str, str]:
    """The chart's files, by path."""
    head = {"apiVersion": "v2", "name": "lamina", "description": _DESCRIPTION, "type": "application"}
    versions = {"version": __version__, "appVersion": __version__, "kubeVersion": f">={OLDEST[0]}.{OLDEST[1]}.0-0"}
    files = {
        "Chart.yaml": yaml_text(head | versions),
        "values.yaml": "\n".join(_values(Values, plain(Values()), 0)) + "\n",
        "values.schema.json": json.dumps(_schema(), indent=1) + "\n",
        "templates/namespace-check.yaml": _NAMESPACE_CHECK,
        "templates/image-check.yaml": _IMAGE_CHECK,
        "templates/NOTES.txt": NOTES,
    }
    files |= telemetry_files()
    for definition in definitions():
        files[f"crds/{definition['metadata']['name']}.yaml"] = yaml_text(definition)
    for path, documents in _by_file(objects()).items():
        files[f"templates/{path}.yaml"] = "".join("\n".join(["---", *lines]) + "\n" for lines in documents)
    return files


def _schema() -> dict[str, Any]:
    """Helm refuses what `lamina install` refuses; `global` is Helm's own.

    Every value has a default, so a missing one was removed by null.
    """
    schema = msgspec.json.schema(Values)
    for definition in schema["$defs"].values():
        definition["required"] = list(definition["properties"])
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    schema["$defs"]["Values"]["properties"]["global"] = {"type": "object"}
    return schema


def _values(kind: Any, values: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The defaults with a comment above each."""
    margin = "  " * depth
    for field in msgspec.json.schema_components([kind])[1][kind.__name__]["properties"].items():
        name, schema = field
        inner = _struct(kind, name)
        if inner is not None:
            yield f"{margin}# {' '.join((inner.__doc__ or '').split())}"
            yield f"{margin}{name}:"
            yield from _values(inner, values[name], depth + 1)
        else:
            yield f"{margin}# {schema['title']}."
            yield from (margin + line for line in yaml_text({name: values[name]}).rstrip("\n").splitlines())


def _struct(kind: Any, name: str) -> Any:
    found = next(field.type for field in msgspec.structs.fields(kind) if field.encode_name == name)
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None


def _by_file(description: list[Any]) -> dict[str, list[list[str]]]:
    """The lines of each object, gathered by component and kind, such as `agent/daemon-set`."""
    files: dict[str, list[list[str]]] = {}
    for part in description:
        document = part
        while isinstance(document, When):
            document = document.then
        files.setdefault(_file_of(document), []).append(list(_item(part, 0, _entries)))
    return files


def _file_of(document: Mapping[str, Any]) -> str:
    kind = re.sub(r"(?<!^)(?=[A-Z])", "-", document["kind"]).lower()
    labels = document["metadata"]["labels"]
    component = labels.get(COMPONENT) if isinstance(labels, dict) else None
    return f"{component or 'common'}/{kind}"


def _item(part: Any, depth: int, write: Any) -> Iterator[str]:
    """The lines of the part at this depth, with both branches of a condition."""
    if not isinstance(part, When):
        yield from write(part, depth)
        return
    yield f"{{{{- if {part.condition.expression} }}}}"
    yield from _item(part.then, depth, write)
    if part.otherwise is not None:
        yield "{{- else }}"
        yield from _item(part.otherwise, depth, write)
    yield "{{- end }}"


def _entries(mapping: Mapping[str, Any], depth: int) -> Iterator[str]:
    for key, value in mapping.items():
        yield from _item(value, depth, lambda each, at, key=key: _entry(key, each, at))


def _entry(key: str, value: Any, depth: int) -> Iterator[str]:
    margin = "  " * depth
    if isinstance(value, dict) and value:
        yield f"{margin}{key}:"
        yield from _entries(value, depth + 1)
    elif isinstance(value, list) and [each for each in value if isinstance(each, Each)] == value and value:
        (each,) = value
        yield f"{margin}{key}: {{{{ {each.of.expression} | toJson }}}}"
    elif isinstance(value, list) and value and all(isinstance(item, str | int) for item in value):
        yield f"{margin}{key}: {_flow(value)}"
    elif isinstance(value, list) and value:
        yield f"{margin}{key}:"
        for each in value:
            yield from _item(each, depth + 1, _listed)
    else:
        yield f"{margin}{key}: {_scalar(value)}"


def _listed(value: Any, depth: int) -> Iterator[str]:
    margin = "  " * depth
    if isinstance(value, Each):
        yield f"{{{{- range {value.of.expression} }}}}"
        yield f"{margin}- {{{{ . | toJson }}}}"
        yield "{{- end }}"
    elif isinstance(value, dict) and value:
        first, *rest = _entries(value, depth + 1)
        assert not first.startswith("{{"), "the first entry of an item must not depend on a condition"
        yield f"{margin}- {first.lstrip()}"
        yield from rest
    else:
        yield f"{margin}- {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, Term):
        return f"{{{{ {value.expression} | toJson }}}}"
    return _flow(value)


def _flow(value: Any) -> str:
    """A constant on one line: unquoted where YAML reads it back as it is, and braces of templates escaped by quotes."""
    text = yaml.safe_dump(value, default_flow_style=True, width=_UNBOUNDED, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
