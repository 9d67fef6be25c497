"""Nodes: those whose kubelet has fallen silent are marked, and their pods are given up after a while."""

from collections.abc import Iterable

from lamina.lab.controllers import node_plan
from lamina.lab.controllers.hands import Hands
from lamina.lab.controllers.node_plan import GRACE_S, Heartbeat
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.kube import LEASES, NODES, PODS, Resource

LEASE_NAMESPACE = "kube-node-lease"


class Nodes:
    """The controller of Nodes. `grace` in seconds is how long a node may be silent."""

    kind = NODES

    def __init__(self, hands: Hands, grace: float = GRACE_S) -> None:
        self._hands = hands
        self._grace = grace
        self._beats: dict[str, Heartbeat] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource == LEASES and objects.namespace(obj) == LEASE_NAMESPACE:
            return [objects.name(obj)]
        if resource == PODS and objects.spec(obj).get("nodeName"):
            return [str(objects.spec(obj)["nodeName"])]
        return []

    async def sync(self, key: str) -> float | None:
        pods = [pod for pod in self._hands.cache.list(PODS) if objects.spec(pod).get("nodeName") == key]
        node = self._hands.cache.get(NODES, key)
        if node is None:
            if not await self._hands.exists(NODES, key):
                self._beats.pop(key, None)
                await self._bury(pods)
            return None
        waits = await self._judge(node)
        node = self._hands.cache.get(NODES, key) or node
        taints = node_plan.taints_for(node, self._hands.clock.wall())
        if taints is not None:
            node = await self._hands.patch(NODES, node, {"spec": {"taints": taints or None}})
        waits += await self._evict(node, pods)
        return min(waits, default=None)

    async def _judge(self, node: Object) -> list[float]:
        """Note the node's last sign of life; write it off when that was too long ago."""
        name, now = objects.name(node), self._hands.clock.monotonic()
        lease = self._hands.cache.get(LEASES, f"{LEASE_NAMESPACE}/{name}")
        renewal = str(objects.spec(lease).get("renewTime", "")) if lease else ""
        beat = self._beats.get(name)
        if beat is None or beat.renewal != renewal:
            beat = self._beats[name] = Heartbeat(renewal, now)
        left = self._grace - node_plan.silence_s(beat, now)
        if left > 0:
            return [left]
        conditions = node_plan.conditions_of_silent(node, self._hands.clock.wall())
        if conditions is not None:
            await self._hands.patch(NODES, node, {"status": {"conditions": conditions}}, "status")
            message = f"Node {name} status is now: NodeNotReady"
            await self._hands.tell(NODES, node, "NodeNotReady", message)
        return []

    async def _evict(self, node: Object, pods: list[Object]) -> list[float]:
        taints, now = objects.spec(node).get("taints") or (), self._hands.clock.wall()
        ready = str((objects.condition(node, "Ready") or {}).get("status"))
        waits = []
        for pod in pods:
            if objects.is_finished(pod):
                continue
            conditions = node_plan.pod_conditions(pod, ready, now)
            if conditions is not None:
                pod = await self._hands.patch(PODS, pod, {"status": {"conditions": conditions}}, "status")
                if ready != "True":
                    await self._hands.tell(PODS, pod, "NodeNotReady", "Node is not ready", warning=True)
            left = node_plan.stay_s(pod, taints, now)
            if left is None or objects.is_deleting(pod):
                continue
            if left > 0:
                waits.append(left)
                continue
            message = f"Marking for deletion Pod {objects.key(pod)}"
            await self._hands.tell(PODS, pod, "TaintManagerEviction", message)
            await self._hands.delete(PODS, pod)
        return waits

    async def _bury(self, pods: list[Object]) -> None:
        """Pods of a node that no longer exists have failed; nobody else will say so, or remove them."""
        for pod in pods:
            if not objects.is_finished(pod):
                said = {"phase": "Failed", "reason": "NodeLost", "message": "The pod's node no longer exists"}
                pod = await self._hands.patch(PODS, pod, {"status": said}, "status")
            await self._hands.delete(PODS, pod)
