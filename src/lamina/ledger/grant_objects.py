"""Grants as objects of the Kubernetes API: written for a pod, and read back."""

from lamina.core.grants import ContainerGrant, Grant, grant_name
from lamina.core.objects import read_grant, write_spec
from lamina.core.requests import PodRequest
from lamina.ledger.pod_holding import GrantRecord
from lamina.ports.kube import PODS, Object

NODE_LABEL = "lamina.dev/node"
MAX_LABEL = 63
"""Characters of a label's value. Grants on a node with a longer name have no label."""


def grant_object(pod: Object, node: str, request: PodRequest, containers: tuple[ContainerGrant, ...]) -> Object:
    """The object that records the shares of a pod on a node. It is garbage collected with its pod."""
    metadata = pod["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    grant = Grant(pod=name, pod_uid=uid, node=node, dialect=request.dialect, containers=containers)
    owner = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "metadata": {
            "name": grant_name(name, uid),
            "namespace": metadata["namespace"],
            "labels": {NODE_LABEL: node} if len(node) <= MAX_LABEL else {},
            "ownerReferences": [owner],
        },
        "spec": write_spec(grant),
    }


def replaced_grant(obj: Object, grant: Grant) -> Object:
    """The object with another grant in it, which replaces the version that `obj` has."""
    return {"metadata": obj["metadata"], "spec": write_spec(grant)}


def grant_record(obj: Object) -> GrantRecord:
    """The record of a Grant object. Raises BadInput for one that cannot be read."""
    metadata = obj["metadata"]
    return GrantRecord(metadata["uid"], metadata["namespace"], metadata["name"], read_grant(obj))
