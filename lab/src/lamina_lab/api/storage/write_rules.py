"""What a write may change: ownership of an object's parts, and when its generation increases.

Pure functions over plain objects. Status belongs to the status subresource, identity to the server, and the rest to
writes of the object itself.
"""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.errors import bad_request, conflict, invalid, invalid_value

EPHEMERAL = "ephemeralcontainers"
"""The subresource of pods that adds ephemeral containers and changes nothing else."""
_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_UNCOUNTED = (
    *("configmaps", "secrets", "serviceaccounts", "events", "nodes", "namespaces", "services"),
    *("limitranges", "controllerrevisions.apps"),
)


def identity(resource: ApiResource, namespace: str, name: str, body: Any) -> Object:
    """The body of a write, checked against its address, with its own copy of the metadata."""
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


def strip_for_create(obj: Object) -> None:
    """Remove what only the server may set, in place."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in (*_SERVER_OWNED, "resourceVersion"):
        meta.pop(field, None)


def counts_generations(resource: ApiResource) -> bool:
    """Kinds whose spec is reconciled."""
    bare = resource.storage in _UNCOUNTED or resource.group.startswith(("rbac.", "coordination.", "scheduling."))
    return not bare


def merged(resource: ApiResource, old: Object, new: Object, subresource: str) -> Object:
    """The object after an update of `old`. Raises 409 if `new` was made from another state or object."""
    meta = new["metadata"]
    _check_identity(resource, old, new)
    if subresource == "status":
        kept = {key: value for key, value in old.items() if key != "status"}
        result = {**kept, "metadata": dict(old["metadata"]), **({"status": new["status"]} if new.get("status") else {})}
        if "managedFields" in meta:
            result["metadata"]["managedFields"] = meta["managedFields"]
    elif subresource == EPHEMERAL:
        added = (new.get("spec") or {}).get("ephemeralContainers") or []
        result = {**old, "metadata": dict(old["metadata"]), "spec": {**old["spec"], "ephemeralContainers": added}}
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


def _check_identity(resource: ApiResource, old: Object, new: Object) -> None:
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


def bump_generation(resource: ApiResource, old: Object, new: Object) -> None:
    """Increase the generation if the desired state changed, in place. Metadata and status do not count."""
    if not counts_generations(resource):
        return

    def wanted(obj: Object) -> Object:
        return {key: value for key, value in obj.items() if key not in ("metadata", "status")}

    if wanted(old) != wanted(new) or (resource.custom and not resource.has_status and _status_differs(old, new)):
        new["metadata"]["generation"] = int(old["metadata"].get("generation", 1)) + 1


def _status_differs(old: Object, new: Object) -> bool:
    return bool(old.get("status") != new.get("status"))
