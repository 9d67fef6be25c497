"""Label and field selectors, parsed from query strings or from selectors in objects, to predicates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lamina.lab.api.resources import Resource
from lamina.lab.api.status import Obj, bad_request

Predicate = Callable[[Obj], bool]

_SET = re.compile(r"^\s*([^\s=!,()]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_PAIR = re.compile(r"^\s*([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)\s*$")
_ORDER = re.compile(r"^\s*([^\s=!,()<>]+)\s*([<>])\s*(-?\d+)\s*$")
_KEY = re.compile(r"^\s*(!?)\s*([^\s=!,()]+)\s*$")

_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
}


def labels(text: str) -> Predicate:
    """A predicate over label maps. Raises 400 for what cannot be parsed."""
    tests = [_label_test(part) for part in _parts(text)]
    return lambda found: all(test(found) for test in tests)


def _parts(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _label_test(part: str) -> Predicate:
    if match := _SET.match(part):
        values = {value.strip() for value in match[3].split(",")}
        return _membership(match[1], match[2] == "in", values)
    if match := _PAIR.match(part):
        return _membership(match[1], match[2] != "!=", {match[3]})
    if match := _ORDER.match(part):
        return _comparison(match[1], match[2], int(match[3]))
    if match := _KEY.match(part):
        key, wanted = match[2], not match[1]
        return lambda found: (key in found) == wanted
    raise bad_request(f"unable to parse requirement: found '{part.strip()}', expected: identifier and operator")


def _membership(key: str, inside: bool, values: set[str]) -> Predicate:
    if inside:
        return lambda found: key in found and found[key] in values
    return lambda found: key not in found or found[key] not in values


def _comparison(key: str, sign: str, bound: int) -> Predicate:
    def test(found: Obj) -> bool:
        try:
            number = int(found[key])
        except (KeyError, ValueError):
            return False
        return number > bound if sign == ">" else number < bound

    return test


def matches(selector: Obj | None, found: Obj | None) -> bool:
    """A LabelSelector object against labels: an empty one selects everything, None nothing."""
    if selector is None:
        return False
    have = found or {}
    if any(have.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for each in selector.get("matchExpressions") or []:
        key, operator, values = each.get("key"), each.get("operator"), each.get("values") or []
        holds = {
            "In": key in have and have[key] in values,
            "NotIn": key not in have or have[key] not in values,
            "Exists": key in have,
            "DoesNotExist": key not in have,
        }
        if not holds.get(operator, False):
            return False
    return True


def as_text(selector: Obj | None) -> str:
    """A LabelSelector object in query form, as a Scale's status shows it."""
    parts = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for each in (selector or {}).get("matchExpressions") or []:
        values = ",".join(each.get("values") or [])
        forms = {"In": f"{each['key']} in ({values})", "NotIn": f"{each['key']} notin ({values})"}
        parts.append(forms.get(each["operator"], each["key"] if each["operator"] == "Exists" else f"!{each['key']}"))
    return ",".join(parts)


def fields(resource: Resource, text: str) -> Predicate:
    """A predicate over objects. Raises 400 for a field that this resource does not index."""
    tests = []
    for part in _parts(text):
        match = re.match(r"^\s*([\w.]+)\s*(==|=|!=)\s*(.*?)\s*$", part)
        if match is None:
            raise bad_request(f"invalid field selector: {part!r}; can't understand it")
        field = match[1]
        if field not in ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.storage, ())):
            raise bad_request(f"field label not supported: {field}")
        tests.append(_field_test(field, match[2] != "!=", match[3]))
    return lambda obj: all(test(obj) for test in tests)


def _field_test(field: str, equal: bool, value: str) -> Predicate:
    path = ("source", "component") if field == "source" else tuple(field.split("."))
    return lambda obj: (_field(obj, path) == value) == equal


def _field(obj: Obj, path: tuple[str, ...]) -> str:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else "0" if path[-1] == "successful" else ""
    return str(found).lower() if isinstance(found, bool) else str(found)


def selection(resource: Resource, label_text: str, field_text: str) -> Predicate | None:
    """Both selectors as one predicate over objects; None when everything is selected."""
    by_label = labels(label_text) if label_text.strip() else None
    by_field = fields(resource, field_text) if field_text.strip() else None
    if by_label is None and by_field is None:
        return None

    def test(obj: Obj) -> bool:
        if by_label is not None and not by_label(obj["metadata"].get("labels") or {}):
            return False
        return by_field is None or by_field(obj)

    return test
