"""The scale subresource: the number of replicas of an object."""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.errors import bad_request, conflict, invalid, invalid_value
from lamina_lab.kubernetes.selectors import as_text


def of(obj: Object) -> Object:
    """The Scale of a deployment, replica set or stateful set."""
    meta = {key: obj["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    status = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
    if text := as_text(obj["spec"].get("selector")):
        status["selector"] = text
    kind = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    return {**kind, "metadata": meta, "spec": {"replicas": obj["spec"].get("replicas", 1)}, "status": status}


def scaled(resource: ApiResource, obj: Object, wanted: Any) -> Object:
    """`obj` with the replicas of a Scale. Raises 409 if the Scale is of another version."""
    if not isinstance(wanted, dict) or not isinstance(wanted.get("spec", {}), dict):
        raise bad_request("the body must be a Scale object")
    name = obj["metadata"]["name"]
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        cause = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("Scale", "autoscaling", name, [cause])
    revision = (wanted.get("metadata") or {}).get("resourceVersion")
    if revision and revision != obj["metadata"]["resourceVersion"]:
        raise conflict(resource.plural, resource.group, name)
    return {**obj, "spec": {**obj["spec"], "replicas": replicas}}
