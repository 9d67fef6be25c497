"""Selectors as kubectl writes them: `a=b`, `a!=b`, `a`, `!a`, joined by commas, and of labels `a in (b, c)` too."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from lamina.errors import BadInput
from lamina.ports.kube.protocol import Object
from lamina.ports.kube.resources import Resource

_KEY = r"(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9._-]*"
_TERM = re.compile(rf"!\s*{_KEY}|{_KEY}(?:\s*(?:=|==|!=)\s*{_VALUE})?")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")


def label_selector(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels are those that a person asks for, with `in` and `notin` as well. Raises BadInput."""
    tests = [_labels_hold(term.strip()) for term in re.split(r",(?![^(]*\))", text)]
    return lambda labels: all(test(labels) for test in tests)


def _labels_hold(term: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.fullmatch(term):
        name, verb, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        return lambda labels: (
            (name in labels and labels[name] in values) if verb == "in" else (labels.get(name) not in values)
        )
    if not _TERM.fullmatch(term):
        raise BadInput(f"--selector has a term {term!r}; write terms such as a=b, a!=b, a, !a or a in (b, c)")
    name, holds = _parsed("".join(term.split()))
    return lambda labels: holds(labels.get(name))


def selector(resource: Resource, namespace: str, labels: str, fields: str) -> Callable[[Object], bool]:
    """Whether an object is one of those asked for."""
    tests = [_label_test(term) for term in labels.split(",") if term]
    tests += [_field_test(term) for term in fields.split(",") if term]
    if resource.namespaced and namespace:
        tests.append(lambda obj: obj["metadata"].get("namespace") == namespace)

    # A list asks this of every object there is, and most often with one term.
    return tests[0] if len(tests) == 1 else lambda obj: all(test(obj) for test in tests)


def _label_test(term: str) -> Callable[[Object], bool]:
    name, holds = _parsed(term)
    return lambda obj: holds((obj["metadata"].get("labels") or {}).get(name))


def _field_test(term: str) -> Callable[[Object], bool]:
    path, holds = _parsed(term)
    names = path.split(".")

    def test(obj: Object) -> bool:
        found: Any = obj
        for name in names:
            found = found.get(name, "") if isinstance(found, dict) else ""
        return holds(str(found))

    return test


def _parsed(term: str) -> tuple[str, Callable[[str | None], bool]]:
    """What a term is about, and whether a value, or None, is one of those it asks for."""
    if "!=" in term:
        name, wanted = term.split("!=", 1)
        return name, lambda value: value != wanted
    if "=" in term:
        name, wanted = term.replace("==", "=").split("=", 1)
        return name, lambda value: value == wanted
    if term.startswith("!"):
        return term[1:], lambda value: value is None
    return term, lambda value: value is not None


def pod_labels(workload: Object) -> str:
    """The selector of a workload's pods by their labels; empty where it matches none by equality."""
    labels: Mapping[str, str] = (workload["spec"].get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in labels.items())


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector object against labels: an empty one selects everything, None nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for each in selector.get("matchExpressions") or ():
        value, values = labels.get(each.get("key")), each.get("values") or ()
        holds = {
            "In": value is not None and value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds.get(each.get("operator"), False):
            return False
    return True
