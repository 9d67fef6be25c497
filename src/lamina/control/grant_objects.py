"""Grants as objects of the API: written for a pod, read back."""

import msgspec

from lamina.control.claims import GrantRecord
from lamina.errors import BadInput
from lamina.model.gpus import Inventory
from lamina.model.grants import ContainerGrant, Grant, grant_name
from lamina.model.requests import PodRequest
from lamina.ports.kube import PODS, Object

NODE_LABEL = "lamina.dev/node"
LONGEST_LABEL = 63
"""Characters of a label's value; a node with a longer name has no label on its grants."""


def grant_object(pod: Object, node: str, request: PodRequest, containers: tuple[ContainerGrant, ...]) -> Object:
    """The object that records the shares of a pod on a node. It goes when its pod goes."""
    meta = pod["metadata"]
    grant = Grant(pod=meta["name"], pod_uid=meta["uid"], node=node, dialect=request.dialect, containers=containers)
    owner = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "metadata": {
            "name": grant_name(meta["name"], meta["uid"]),
            "namespace": meta["namespace"],
            "labels": {NODE_LABEL: node} if len(node) <= LONGEST_LABEL else {},
            "ownerReferences": [owner],
        },
        "spec": msgspec.to_builtins(grant),
    }


def grant_record(obj: Object) -> GrantRecord:
    """What a Grant object says. Raises BadInput for one that nobody of ours wrote."""
    meta = obj["metadata"]
    try:
        grant = msgspec.convert(obj.get("spec"), Grant)
    except msgspec.ValidationError as error:
        raise BadInput(f"grant {meta.get('namespace')}/{meta['name']} cannot be read: {error}") from error
    return GrantRecord(meta["uid"], meta["namespace"], meta["name"], grant)


def inventory_of(obj: Object) -> Inventory:
    """What an Inventory object says. Raises BadInput for one that is not readable or names another node."""
    name = obj["metadata"]["name"]
    try:
        inventory = msgspec.convert(obj.get("spec"), Inventory)
    except msgspec.ValidationError as error:
        raise BadInput(f"inventory {name} cannot be read: {error}") from error
    if inventory.node != name:
        raise BadInput(f"inventory {name} is about the node {inventory.node}; it must have its node's name")
    return inventory
