"""What a write may change: who owns which part of an object, and when its generation moves on.

Pure functions over plain objects. Status belongs to the status subresource, identity to the server, the rest to whoever
writes the object itself.
"""

from __future__ import annotations

from typing import Any

from lamina.lab.api.resources import Resource
from lamina.lab.api.status import Obj, bad_request, conflict, invalid, invalid_value

_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_UNCOUNTED = ("configmaps", "secrets", "serviceaccounts", "events", "nodes", "namespaces", "services")


def identity(resource: Resource, namespace: str, name: str, body: Any) -> Obj:
    """The body of a write, checked against the address it was sent to, with its own metadata to change."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    kind, api_version = body.get("kind"), body.get("apiVersion")
    if not kind or not api_version:
        raise bad_request("Object 'Kind' is missing" if not kind else "Object 'apiVersion' is missing")
    if (api_version, kind) != (resource.api_version, resource.kind):
        group, _, version = str(api_version).rpartition("/")
        raise bad_request(
            f"{kind} in version {version!r} of group {group!r} cannot be handled as a {resource.kind} "
            f"of {resource.api_version}".replace("'", '"')
        )
    meta = body.get("metadata")
    obj = {**body, "metadata": dict(meta) if isinstance(meta, dict) else {}}
    own = obj["metadata"]
    if resource.namespaced:
        if own.setdefault("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        own.pop("namespace", None)
    if name and own.setdefault("name", name) != name:
        raise bad_request(f"the name of the object ({own['name']}) does not match the name on the URL ({name})")
    return obj


def strip_for_create(obj: Obj) -> None:
    """Take out what only the server says, in place."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in (*_SERVER_OWNED, "resourceVersion"):
        meta.pop(field, None)


def counts_generations(resource: Resource) -> bool:
    """Kinds with a spec that somebody reconciles."""
    bare = resource.storage in _UNCOUNTED or resource.group.startswith(("rbac.", "coordination.", "scheduling."))
    return not bare


def merged(resource: Resource, old: Obj, new: Obj, subresource: str) -> Obj:
    """The object that an update makes of `old`. Raises 409 where `new` was made from another state or object."""
    meta = new["metadata"]
    _check_identity(resource, old, new)
    if subresource == "status":
        kept = {key: value for key, value in old.items() if key != "status"}
        result = {**kept, "metadata": dict(old["metadata"]), **({"status": new["status"]} if new.get("status") else {})}
        if "managedFields" in meta:
            result["metadata"]["managedFields"] = meta["managedFields"]
    else:
        result = {**new, "metadata": dict(meta)}
        if resource.has_status:
            result.pop("status", None)
            if "status" in old:
                result["status"] = old["status"]
    target = result["metadata"]
    for field in _SERVER_OWNED:
        target.pop(field, None)
        if field in old["metadata"]:
            target[field] = old["metadata"][field]
    target["resourceVersion"] = old["metadata"]["resourceVersion"]
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
        if target.get(field) in (None, [], {}):
            target.pop(field, None)
    return result


def _check_identity(resource: Resource, old: Obj, new: Obj) -> None:
    meta, name = new["metadata"], old["metadata"]["name"]
    revision = meta.get("resourceVersion")
    if revision and revision != old["metadata"]["resourceVersion"]:
        raise conflict(resource.plural, resource.group, name)
    if not revision and resource.custom:
        cause = invalid_value("metadata.resourceVersion", "", "must be specified for an update")
        raise invalid(resource.kind, resource.group, name, [cause])
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(resource.plural, resource.group, name, why)


def bump_generation(resource: Resource, old: Obj, new: Obj) -> None:
    """Count a change of what is wanted, in place; metadata and status do not count."""
    if not counts_generations(resource):
        return

    def wanted(obj: Obj) -> Obj:
        return {key: value for key, value in obj.items() if key not in ("metadata", "status")}

    if wanted(old) != wanted(new) or (resource.custom and not resource.has_status and _status_differs(old, new)):
        new["metadata"]["generation"] = int(old["metadata"].get("generation", 1)) + 1


def _status_differs(old: Obj, new: Obj) -> bool:
    return bool(old.get("status") != new.get("status"))
