"""The cluster as one node's agent sees it: pods and their grants are read, the node's inventory is written."""

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import msgspec

from lamina.errors import BadInput
from lamina.model.gpus import Inventory
from lamina.model.grants import Grant, grant_name
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Kube, NotFound

_FINISHED = ("Succeeded", "Failed")


class Pod(NamedTuple):
    """What matters of a pod. `finished` means that none of its containers will run again."""

    uid: str
    node: str
    finished: bool


class Cluster:
    """Every call may raise Outside when Kubernetes does not answer or refuses."""

    def __init__(self, kube: Kube, node: str) -> None:
        self._kube = kube
        self._node = node

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod that has this name now, if there is one."""
        try:
            return _pod(await self._kube.get(PODS, name, namespace=namespace))
        except NotFound:
            return None

    async def container_ids(self, namespace: str, name: str, uid: str) -> Mapping[str, str]:
        """The runtime's ids of a pod's running containers, by their names; none for another pod of this name."""
        try:
            found = await self._kube.get(PODS, name, namespace=namespace)
        except NotFound:
            return {}
        if found["metadata"]["uid"] != uid:
            return {}
        status = found.get("status", {})
        listed = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        return {one["name"]: one.get("containerID", "") for one in listed if "running" in one.get("state", {})}

    async def pods_here(self) -> frozenset[str]:
        """The UIDs of the pods that are bound to this node and not finished."""
        listing = await self._kube.list(PODS, fields=f"spec.nodeName={self._node}")
        pods = [_pod(item) for item in listing.items]
        return frozenset(pod.uid for pod in pods if pod.node == self._node and not pod.finished)

    async def asking(self, resources: Set[str]) -> frozenset[tuple[str, str]]:
        """Namespace and name of the pods that are bound to this node, not finished, and ask for one of these."""
        listing = await self._kube.list(PODS, fields=f"spec.nodeName={self._node}")
        return frozenset(
            (item["metadata"]["namespace"], item["metadata"]["name"])
            for item in listing.items
            if _pod(item).node == self._node and not _pod(item).finished and resources & _asked(item)
        )

    async def grants_here(self) -> Mapping[str, Grant]:
        """The grants of the pods that are bound to this node and not finished, by namespace and name of the pod."""
        listing = await self._kube.list(PODS, fields=f"spec.nodeName={self._node}")
        found = {}
        for item in listing.items:
            meta, pod = item["metadata"], _pod(item)
            if pod.node != self._node or pod.finished:
                continue
            grant = await self.grant(meta["namespace"], meta["name"], pod.uid)
            if grant is not None:
                found[f"{meta['namespace']}/{meta['name']}"] = grant
        return found

    async def grant(self, namespace: str, pod: str, pod_uid: str) -> Grant | None:
        """The grant of a pod, if it has one. Raises BadInput where it cannot be understood."""
        name = grant_name(pod, pod_uid)
        try:
            found = await self._kube.get(GRANTS, name, namespace=namespace)
        except NotFound:
            return None
        try:
            return msgspec.convert(found.get("spec"), Grant)
        except msgspec.ValidationError as error:
            raise BadInput(f"the grant {namespace}/{name} cannot be understood: {error}") from error

    async def published(self) -> Inventory | None:
        """The node's Inventory as it was published last; None where there is none that can be understood."""
        try:
            found = await self._kube.get(INVENTORIES, self._node)
            return msgspec.convert(found.get("spec"), Inventory)
        except (NotFound, msgspec.ValidationError):
            return None

    async def publish(self, inventory: Inventory) -> bool:
        """Make the node's Inventory say this. Whether anything had to be written."""
        # By way of JSON, so that it compares with what the server gives: lists, not tuples.
        spec = msgspec.json.decode(msgspec.json.encode(inventory))
        try:
            found = await self._kube.get(INVENTORIES, self._node)
        except NotFound:
            meta = {"name": self._node, "ownerReferences": await self._owner()}
            await self._kube.create(INVENTORIES, {"metadata": meta, "spec": spec})
            return True
        if found.get("spec") == spec:
            return False
        await self._kube.replace(INVENTORIES, {**found, "spec": spec})
        return True

    async def _owner(self) -> list[dict[str, str]]:
        """The node owns its inventory, so that they go together: one without an owner would stay for ever."""
        try:
            node = await self._kube.get(NODES, self._node)
        except NotFound as error:
            raise NotFound(f"Kubernetes has no node {self._node}, whose inventory this is") from error
        uid = node["metadata"]["uid"]
        return [{"apiVersion": NODES.api_version, "kind": NODES.kind, "name": self._node, "uid": uid}]


def _pod(found: dict[str, Any]) -> Pod:
    return Pod(
        uid=found["metadata"]["uid"],
        node=found.get("spec", {}).get("nodeName", ""),
        finished=found.get("status", {}).get("phase") in _FINISHED,
    )


def _asked(pod: dict[str, Any]) -> Set[str]:
    """The resources that its containers name."""
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    return {name for each in containers for name in each.get("resources", {}).get("limits", {})}
