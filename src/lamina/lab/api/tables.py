"""Tables as `kubectl get` prints them: the columns of Kubernetes for its own kinds, printer columns for custom ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.lab.api import jsonpath
from lamina.lab.api.ages import age
from lamina.lab.api.resources import Resource
from lamina.lab.api.status import Obj
from lamina.lab.api.tables_common import Column, Layout, column
from lamina.lab.api.tables_pods import PODS
from lamina.lab.api.tables_simple import SIMPLE
from lamina.lab.api.tables_workloads import WORKLOADS

_LAYOUTS: dict[str, Layout] = {"pods": PODS, **WORKLOADS, **SIMPLE}
_PLAIN = Layout((column("Name"), column("Age")), lambda obj, now: [obj["metadata"]["name"], _age(obj, now)])


def table(resource: Resource, objects: list[Obj], include: str, now: float, revision: str) -> Obj:
    """A Table object. `include` says how much of each object comes along: None, Metadata or Object."""
    layout = _custom(resource) if resource.custom else _LAYOUTS.get(resource.storage, _PLAIN)
    rows = []
    for obj in objects:
        row: Obj = {"cells": _cells(layout, obj, now)}
        if include == "Object":
            row["object"] = obj
        elif include == "Metadata":
            api_version = "meta.k8s.io/v1"
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj["metadata"]}
        rows.append(row)
    kind = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision}}
    return {**kind, "columnDefinitions": [each.definition() for each in layout.columns], "rows": rows}


def _cells(layout: Layout, obj: Obj, now: float) -> list[Any]:
    """An object without a name is a bookmark, and shows nothing."""
    if "name" not in obj["metadata"]:
        return ["" for _ in layout.columns]
    return layout.cells(obj, now)


def _age(obj: Obj, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _custom(resource: Resource) -> Layout:
    if not resource.columns:
        return _PLAIN
    columns = [column("Name")]
    readers: list[Callable[[Obj, float], Any]] = [lambda obj, now: obj["metadata"]["name"]]
    for each in resource.columns:
        kind = each.get("type", "string")
        shown = "string" if kind == "date" else kind
        columns.append(Column(each["name"], shown, each.get("priority", 0), each.get("description", "")))
        readers.append(_reader(kind, each.get("jsonPath", "")))
    return Layout(tuple(columns), lambda obj, now: [read(obj, now) for read in readers])


def _reader(kind: str, path: str) -> Callable[[Obj, float], Any]:
    steps = jsonpath.parse(path)

    def read(obj: Obj, now: float) -> Any:
        found = jsonpath.find(steps, obj)
        if not found:
            return None
        if kind == "date":
            return age(found[0], now)
        if kind in ("integer", "number", "boolean"):
            return found[0]
        return " ".join(jsonpath.text(each) for each in found)

    return read
