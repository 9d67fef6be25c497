"""The ReplicaSet controller: as many pods as the spec says, and their counts in the status."""

from collections.abc import Iterable

from msgspec import Struct

from lamina.ports.kube import PODS, Object, Resource
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import REPLICA_SETS
from lamina_lab.controllers.framework.ownership import sort_children
from lamina_lab.controllers.framework.pod_template import pod_from
from lamina_lab.controllers.framework.replicas import available_in
from lamina_lab.controllers.replicaset import plan
from lamina_lab.kubernetes import objects

_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 60.0


class Refusal(Struct):
    """The last attempt to create a pod was refused. It is repeated at `due` (monotonic seconds), or for a new spec."""

    message: str
    times: int
    due: float
    generation: int


class ReplicaSetController:
    """The controller of ReplicaSets."""

    kind = REPLICA_SETS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._refusals: dict[str, Refusal] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource != PODS:
            return []
        owner = objects.controller(obj)
        if owner is not None:
            return [f"{objects.namespace(obj)}/{owner['name']}"] if owner.get("kind") == REPLICA_SETS.kind else []
        all_nodes = self._executor.cache.list(REPLICA_SETS, objects.namespace(obj))
        return [objects.key(all_node) for all_node in all_nodes if sort_children(all_node, [obj]).adopt]

    async def sync(self, key: str) -> float | None:
        replica_set = self._executor.cache.get(REPLICA_SETS, key)
        if replica_set is None:
            self._refusals.pop(key, None)
            return None
        waits: list[float] = []
        if not objects.is_deleting(replica_set):
            waits += await self._manage(key, replica_set, await self._pods_of(replica_set))
        replica_set = self._executor.cache.get(REPLICA_SETS, key) or replica_set
        pods = sort_children(replica_set, self._executor.cache.list(PODS, objects.namespace(replica_set))).owned
        refusal = self._refusals.get(key)
        now = self._executor.clock.wall()
        status = plan.status_of(replica_set, pods, now, failure=refusal.message if refusal else "")
        await self._executor.publish(REPLICA_SETS, replica_set, status)
        min_ready_s = float(objects.spec(replica_set).get("minReadySeconds") or 0)
        if (soon := available_in(pods, min_ready_s, now)) is not None:
            waits.append(soon + 1.0)  # the time of readiness is in whole seconds
        return min(waits, default=None)

    async def _pods_of(self, replica_set: Object) -> list[Object]:
        pods = self._executor.cache.list(PODS, objects.namespace(replica_set))
        return await self._executor.own(REPLICA_SETS, replica_set, PODS, pods)

    async def _manage(self, key: str, replica_set: Object, pods: list[Object]) -> list[float]:
        """Create or delete pods. Returns the seconds after which to try again, if it is not possible now."""
        now = self._executor.clock.wall()
        difference = plan.missing(replica_set, pods)
        await self._executor.delete_pods(REPLICA_SETS, replica_set, plan.surplus_failures(pods))
        if difference < 0:
            await self._executor.delete_pods(REPLICA_SETS, replica_set, plan.to_delete(pods, -difference, now))
        if difference <= 0:
            self._refusals.pop(key, None)
            return []
        wait = max(self._held_up(key, replica_set), plan.creation_delay(pods, now))
        if wait > 0:
            return [wait]
        return await self._make(key, replica_set, difference)

    def _held_up(self, key: str, replica_set: Object) -> float:
        refusal = self._refusals.get(key)
        if refusal is None or refusal.generation != replica_set["metadata"].get("generation", 0):
            return 0.0
        return max(0.0, refusal.due - self._executor.clock.monotonic())

    async def _make(self, key: str, replica_set: Object, count: int) -> list[float]:
        template = objects.spec(replica_set).get("template") or {}
        pod = pod_from(template, replica_set, REPLICA_SETS.api_version, REPLICA_SETS.kind, {})
        made = await self._executor.create_pods(REPLICA_SETS, replica_set, [pod] * count)
        if not made.failure:
            self._refusals.pop(key, None)
            return []
        before = self._refusals.get(key)
        generation = replica_set["metadata"].get("generation", 0)
        times = before.times + 1 if before and not made.count and before.generation == generation else 0
        pause = min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2.0**times)
        due = self._executor.clock.monotonic() + pause
        self._refusals[key] = Refusal(made.failure, times, due, generation)
        return [pause]
