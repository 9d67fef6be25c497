"""Tables as `kubectl get` prints them: Kubernetes' columns for its own kinds, printer columns for custom resources."""

from collections.abc import Callable
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.printing import jsonpath
from lamina_lab.api.printing.ages import age
from lamina_lab.api.printing.common import Column, Layout, column
from lamina_lab.api.printing.pods import PODS
from lamina_lab.api.printing.simple import SIMPLE
from lamina_lab.api.printing.workloads import WORKLOADS
from lamina_lab.api.schema.resources import ApiResource

_LAYOUTS: dict[str, Layout] = {"pods": PODS, **WORKLOADS, **SIMPLE}
_PLAIN = Layout((column("Name"), column("Age")), lambda obj, now: [obj["metadata"]["name"], _age(obj, now)])


def table(resource: ApiResource, objects: list[Object], include: str, now: float, revision: str) -> Object:
    """A Table object. `include` says how much of each object is included: None, Metadata or Object."""
    layout = _custom(resource) if resource.custom else _LAYOUTS.get(resource.storage, _PLAIN)
    rows = []
    for obj in objects:
        row: Object = {"cells": _cells(layout, obj, now)}
        if include == "Object":
            row["object"] = obj
        elif include == "Metadata":
            api_version = "meta.k8s.io/v1"
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj["metadata"]}
        rows.append(row)
    kind = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision}}
    return {**kind, "columnDefinitions": [column.definition() for column in layout.columns], "rows": rows}


def _cells(layout: Layout, obj: Object, now: float) -> list[Any]:
    """An object without a name is a bookmark and has no cells."""
    if "name" not in obj["metadata"]:
        return ["" for _ in layout.columns]
    return layout.cells(obj, now)


def _age(obj: Object, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _custom(resource: ApiResource) -> Layout:
    if not resource.columns:
        return _PLAIN
    columns = [column("Name")]
    readers: list[Callable[[Object, float], Any]] = [lambda obj, now: obj["metadata"]["name"]]
    for printed in resource.columns:
        kind = printed.get("type", "string")
        shown = "string" if kind == "date" else kind
        columns.append(Column(printed["name"], shown, printed.get("priority", 0), printed.get("description", "")))
        readers.append(_reader(kind, printed.get("jsonPath", "")))
    return Layout(tuple(columns), lambda obj, now: [read(obj, now) for read in readers])


def _reader(kind: str, path: str) -> Callable[[Object, float], Any]:
    steps = jsonpath.parse(path)

    def read(obj: Object, now: float) -> Any:
        found = jsonpath.find(steps, obj)
        if not found:
            return None
        if kind == "date":
            return age(found[0], now)
        if kind in ("integer", "number", "boolean"):
            return found[0]
        return " ".join(jsonpath.text(value) for value in found)

    return read
