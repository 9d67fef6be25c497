"""The node controller: nodes whose kubelet is silent become NotReady, and their pods are evicted after a while."""

from collections.abc import Iterable

from lamina.ports.kube import LEASES, NODES, PODS, Object, Resource
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.node import plan
from lamina_lab.controllers.node.plan import GRACE_S, Heartbeat
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.taints import eviction_delay_s

LEASE_NAMESPACE = "kube-node-lease"


class NodeController:
    """The controller of Nodes. `grace` is how many seconds a node may be silent."""

    kind = NODES

    def __init__(self, executor: Executor, grace: float = GRACE_S) -> None:
        self._executor = executor
        self._grace = grace
        self._beats: dict[str, Heartbeat] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource == LEASES and objects.namespace(obj) == LEASE_NAMESPACE:
            return [objects.name(obj)]
        if resource == PODS and objects.spec(obj).get("nodeName"):
            return [str(objects.spec(obj)["nodeName"])]
        return []

    async def sync(self, key: str) -> float | None:
        pods = [pod for pod in self._executor.cache.list(PODS) if objects.spec(pod).get("nodeName") == key]
        node = self._executor.cache.get(NODES, key)
        if node is None:
            if not await self._executor.exists(NODES, key):
                self._beats.pop(key, None)
                await self._fail_orphaned_pods(pods)
            return None
        waits = await self._check_heartbeat(node)
        node = self._executor.cache.get(NODES, key) or node
        taints = plan.taints_for(node, self._executor.clock.wall())
        if taints is not None:
            node = await self._executor.patch(NODES, node, {"spec": {"taints": taints or None}})
        waits += await self._evict(node, pods)
        return min(waits, default=None)

    async def _check_heartbeat(self, node: Object) -> list[float]:
        """Note the node's last heartbeat; mark it NotReady if that is too long ago."""
        name, now = objects.name(node), self._executor.clock.monotonic()
        lease = self._executor.cache.get(LEASES, f"{LEASE_NAMESPACE}/{name}")
        renewal = str(objects.spec(lease).get("renewTime", "")) if lease else ""
        beat = self._beats.get(name)
        if beat is None or beat.renewal != renewal:
            beat = self._beats[name] = Heartbeat(renewal, now)
        left = self._grace - plan.silence_s(beat, now)
        if left > 0:
            return [left]
        conditions = plan.conditions_of_silent_node(node, self._executor.clock.wall())
        if conditions is not None:
            await self._executor.patch(NODES, node, {"status": {"conditions": conditions}}, "status")
            message = f"Node {name} status is now: NodeNotReady"
            await self._executor.record_event(NODES, node, "NodeNotReady", message)
        return []

    async def _evict(self, node: Object, pods: list[Object]) -> list[float]:
        taints, now = objects.spec(node).get("taints") or (), self._executor.clock.wall()
        ready = str((objects.condition(node, "Ready") or {}).get("status"))
        waits = []
        for pod in pods:
            if objects.is_finished(pod):
                continue
            conditions = plan.pod_conditions(pod, ready, now)
            if conditions is not None:
                pod = await self._executor.patch(PODS, pod, {"status": {"conditions": conditions}}, "status")
                if ready != "True":
                    await self._executor.record_event(PODS, pod, "NodeNotReady", "Node is not ready", warning=True)
            left = eviction_delay_s(objects.spec(pod).get("tolerations") or (), taints, now)
            if left is None or objects.is_deleting(pod):
                continue
            if left > 0:
                waits.append(left)
                continue
            message = f"Marking for deletion Pod {objects.key(pod)}"
            await self._executor.record_event(PODS, pod, "TaintManagerEviction", message)
            await self._executor.delete(PODS, pod)
        return waits

    async def _fail_orphaned_pods(self, pods: list[Object]) -> None:
        """Mark pods of a node that no longer exists as failed, and delete them."""
        for pod in pods:
            if not objects.is_finished(pod):
                said = {"phase": "Failed", "reason": "NodeLost", "message": "The pod's node no longer exists"}
                pod = await self._executor.patch(PODS, pod, {"status": said}, "status")
            await self._executor.delete(PODS, pod)
