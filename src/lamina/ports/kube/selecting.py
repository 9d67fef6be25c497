"""Selectors as kubectl writes them, of the simple kinds: `a=b`, `a!=b`, `a`, `!a`, joined by commas."""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.ports.kube.protocol import Object
from lamina.ports.kube.resources import Resource


def selector(resource: Resource, namespace: str, labels: str, fields: str) -> Callable[[Object], bool]:
    """Whether an object is one of those asked for."""
    label_terms = [term for term in labels.split(",") if term]
    field_terms = [term for term in fields.split(",") if term]

    def wanted(obj: Object) -> bool:
        meta = obj["metadata"]
        if resource.namespaced and namespace and meta.get("namespace") != namespace:
            return False
        has = meta.get("labels") or {}
        return all(_holds(term, has.get) for term in label_terms) and all(
            _holds(term, lambda path: _field(obj, path)) for term in field_terms
        )

    return wanted


def _holds(term: str, value: Callable[[str], str | None]) -> bool:
    if "!=" in term:
        name, wanted = term.split("!=", 1)
        return value(name) != wanted
    if "=" in term:
        name, wanted = term.replace("==", "=").split("=", 1)
        return value(name) == wanted
    return value(term[1:]) is None if term.startswith("!") else value(term) is not None


def _field(obj: Object, path: str) -> str:
    found: Any = obj
    for part in path.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return str(found)


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
