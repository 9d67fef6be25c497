"""Selectors as kubectl writes them, of the simple kinds: `a=b`, `a!=b`, `a`, `!a`, joined by commas."""

from collections.abc import Callable
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
