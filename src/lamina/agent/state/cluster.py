"""Access to the cluster for one node's agent: it reads pods and their grants and writes the node's Inventory."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from lamina.core.gpus import Inventory
from lamina.core.grants import Grant, grant_name
from lamina.core.objects import read_grant, read_inventory, write_spec
from lamina.core.pod_status import is_over
from lamina.errors import Outside
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Kube, NotFound, Object
from lamina.ports.set_aside import SetAside


class PodStatus(NamedTuple):
    """The fields of a pod that the agent uses. `finished`: none of its containers will run again."""

    uid: str
    node: str
    finished: bool


class SpecVersion(NamedTuple):
    """Which object this is, and how often its spec has been changed. The API server counts that, whatever it stores."""

    uid: str
    generation: int


class WrittenInventory(NamedTuple):
    """The Inventory as the API server has it after a write. `changed`: it was not as wanted before."""

    version: SpecVersion
    changed: bool


class ClusterClient:
    """Every call raises Outside when the API server does not answer or refuses the request.

    In lists, a pod that cannot be read is set aside and counts as one that may use everything.
    """

    def __init__(self, kube: Kube, node: str, aside: SetAside) -> None:
        self._kube = kube
        self._node = node
        self._aside = aside

    async def get_pod(self, namespace: str, name: str) -> PodStatus | None:
        """The pod that has this name now; None if there is none."""
        try:
            return pod_status(await self._kube.get(PODS, name, namespace=namespace))
        except NotFound:
            return None

    async def find_pod(self, uid: str) -> tuple[str, str] | None:
        """Namespace and name of the unfinished pod of this node with this UID; None if there is none."""
        named = (item["metadata"] for item in await self._list_pods())
        return next(((each["namespace"], each["name"]) for each in named if each["uid"] == uid), None)

    async def list_container_ids(self, namespace: str, name: str, uid: str) -> Mapping[str, str]:
        """The runtime's IDs of a pod's running containers, by name; empty if the pod now has another UID."""
        try:
            pod = await self._kube.get(PODS, name, namespace=namespace)
        except NotFound:
            return {}
        if pod["metadata"]["uid"] != uid:
            return {}
        return running_containers(pod)

    async def list_pod_uids(self) -> frozenset[str]:
        """The UIDs of the unfinished pods of this node."""
        return frozenset(item["metadata"]["uid"] for item in await self._list_pods())

    async def list_pods_requesting(self, resources: Set[str]) -> frozenset[tuple[str, str]]:
        """Namespace and name of the unfinished pods of this node that request one of these resources."""
        return frozenset(
            (item["metadata"]["namespace"], item["metadata"]["name"])
            for item in await self._list_pods()
            if self._may_request(item, resources)
        )

    async def list_grants(self) -> Mapping[str, Grant]:
        """The grants of the unfinished pods of this node, by `namespace/name` of the pod.

        A grant that cannot be read is set aside: no container can start with it.
        """
        grants = {}
        for item in await self._list_pods():
            namespace, name, uid = (item["metadata"][key] for key in ("namespace", "name", "uid"))
            with self._aside.around(GRANTS.plural, f"{namespace}/{grant_name(name, uid)}", passing=Outside):
                grant = await self.get_grant(namespace, name, uid)
                if grant is not None:
                    grants[f"{namespace}/{name}"] = grant
        return grants

    async def _list_pods(self) -> list[Object]:
        """The unfinished pods of this node, and those that cannot be read."""
        listing = await self._kube.list(PODS, fields=f"spec.nodeName={self._node}")
        return [item for item in listing.items if self._may_run_here(item)]

    def _may_run_here(self, pod: Object) -> bool:
        with self._aside.around(PODS.plural, _name(pod)):
            status = pod_status(pod)
            return status.node == self._node and not status.finished
        return True

    def _may_request(self, pod: Object, resources: Set[str]) -> bool:
        with self._aside.around("requests of a pod", _name(pod)):
            return bool(resources & requested(pod))
        return True

    async def get_grant(self, namespace: str, pod: str, pod_uid: str) -> Grant | None:
        """The grant of a pod, if it has one. Raises BadInput if it cannot be read."""
        name = grant_name(pod, pod_uid)
        try:
            return read_grant(await self._kube.get(GRANTS, name, namespace=namespace))
        except NotFound:
            return None

    async def get_inventory(self) -> Inventory | None:
        """The node's Inventory as it was published last; None if there is none that can be read."""
        try:
            with self._aside.around(INVENTORIES.plural, self._node, passing=Outside):
                return read_inventory(await self._kube.get(INVENTORIES, self._node))
        except NotFound:
            pass
        return None

    async def write_inventory(self, inventory: Inventory) -> WrittenInventory:
        """Create or update the node's Inventory, unless it is as wanted."""
        spec = write_spec(inventory)
        try:
            current = await self._kube.get(INVENTORIES, self._node)
        except NotFound:
            meta = {"name": self._node, "ownerReferences": await self._owner()}
            created = await self._kube.create(INVENTORIES, {"metadata": meta, "spec": spec})
            return WrittenInventory(spec_version(created), changed=True)
        if current.get("spec") == spec:
            return WrittenInventory(spec_version(current), changed=False)
        replaced = await self._kube.replace(INVENTORIES, {**current, "spec": spec})
        return WrittenInventory(spec_version(replaced), changed=True)

    async def _owner(self) -> list[dict[str, str]]:
        """Owner references to the node, so that the API server removes the Inventory with the node."""
        try:
            node = await self._kube.get(NODES, self._node)
        except NotFound as error:
            raise NotFound(f"cannot write the Inventory of node {self._node}: Kubernetes has no such node") from error
        uid = node["metadata"]["uid"]
        return [{"apiVersion": NODES.api_version, "kind": NODES.kind, "name": self._node, "uid": uid}]


def spec_version(obj: Object) -> SpecVersion:
    """The version of an object's spec."""
    return SpecVersion(obj["metadata"]["uid"], obj["metadata"].get("generation", 0))


def pod_status(pod: Object) -> PodStatus:
    """The fields of a pod that the agent uses."""
    return PodStatus(
        uid=pod["metadata"]["uid"],
        node=(pod.get("spec") or {}).get("nodeName") or "",
        finished=is_over(pod),
    )


def running_containers(pod: Object) -> Mapping[str, str]:
    """The runtime's IDs of the running containers, by name."""
    status = pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return {each["name"]: each.get("containerID") or "" for each in statuses if "running" in (each.get("state") or {})}


def requested(pod: Object) -> Set[str]:
    """The resources in the limits of its containers."""
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    return {name for each in containers for name in (each.get("resources") or {}).get("limits") or {}}


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
