"""Accessors for Kubernetes objects as plain dictionaries: names, owners, conditions, the state of a pod.

Objects from the cache are shared and must not be changed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.ports.kube import Object


def meta(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("metadata") or {}
    return found


def spec(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("spec") or {}
    return found


def status(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("status") or {}
    return found


def name(obj: Mapping[str, Any]) -> str:
    return str(meta(obj).get("name", ""))


def namespace(obj: Mapping[str, Any]) -> str:
    return str(meta(obj).get("namespace", ""))


def uid(obj: Mapping[str, Any]) -> str:
    return str(meta(obj).get("uid", ""))


def labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return meta(obj).get("labels") or {}


def annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return meta(obj).get("annotations") or {}


def key(obj: Mapping[str, Any]) -> str:
    """`namespace/name`, or the name alone for what has no namespace."""
    return f"{namespace(obj)}/{name(obj)}" if namespace(obj) else name(obj)


def version(obj: Mapping[str, Any]) -> int:
    """The resourceVersion, which is a number in the lab's own store."""
    return int(meta(obj).get("resourceVersion") or 0)


def is_deleting(obj: Mapping[str, Any]) -> bool:
    return bool(meta(obj).get("deletionTimestamp"))


def controller(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner reference of the controller that manages `obj`, if any."""
    for reference in meta(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            found: Mapping[str, Any] = reference
            return found
    return None


def owner_reference(api_version: str, kind: str, owner: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(obj: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    for entry in status(obj).get("conditions") or ():
        if entry.get("type") == kind:
            found: Mapping[str, Any] = entry
            return found
    return None


def with_condition(conditions: Iterable[Mapping[str, Any]], new: Mapping[str, Any]) -> list[Object]:
    """`conditions` with `new` replacing its type; lastTransitionTime is kept while the status stays the same."""
    result: list[Object] = []
    placed = False
    for old in conditions:
        if old.get("type") != new["type"]:
            result.append(dict(old))
            continue
        entry = dict(new)
        if old.get("status") == new.get("status") and old.get("lastTransitionTime"):
            entry["lastTransitionTime"] = old["lastTransitionTime"]
        result.append(entry)
        placed = True
    return result if placed else [*result, dict(new)]


def without_condition(conditions: Iterable[Mapping[str, Any]], kind: str) -> list[Object]:
    return [dict(entry) for entry in conditions if entry.get("type") != kind]


def phase(pod: Mapping[str, Any]) -> str:
    return str(status(pod).get("phase") or "Pending")


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has ended and holds no resources."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Mapping[str, Any]) -> bool:
    """Whether the pod counts as one of its controller's replicas."""
    return not is_finished(pod) and not is_deleting(pod)


def is_ready(pod: Mapping[str, Any]) -> bool:
    ready = condition(pod, "Ready")
    return ready is not None and ready.get("status") == "True"
