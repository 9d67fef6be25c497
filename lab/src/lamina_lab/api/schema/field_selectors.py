"""Field selectors as predicates over objects, alone and together with label selectors."""

import re
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.errors import bad_request
from lamina_lab.kubernetes.selectors import Predicate, labels, split_requirements

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
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}


def fields(resource: ApiResource, text: str) -> Predicate:
    """A predicate over objects. Raises 400 for a field that is not indexed."""
    tests = []
    for part in split_requirements(text):
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


def _field(obj: Object, path: tuple[str, ...]) -> str:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else "0" if path[-1] == "successful" else ""
    return str(found).lower() if isinstance(found, bool) else str(found)


def selection(resource: ApiResource, label_text: str, field_text: str) -> Predicate | None:
    """Both selectors as one predicate over objects; None if everything is selected."""
    by_label = labels(label_text) if label_text.strip() else None
    by_field = fields(resource, field_text) if field_text.strip() else None
    if by_label is None and by_field is None:
        return None

    def test(obj: Object) -> bool:
        if by_label is not None and not by_label(obj["metadata"].get("labels") or {}):
            return False
        return by_field is None or by_field(obj)

    return test
