"""The DaemonSet controller: one pod on each eligible node."""

from collections.abc import Iterable

from lamina.ports.kube import NODES, PODS, Object, Resource
from lamina_lab.controllers.daemonset import plan as daemon_plan
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import DAEMON_SETS
from lamina_lab.kubernetes import objects

_REFUSED_PAUSE_S = 5.0


class DaemonSetController:
    """The controller of DaemonSets."""

    kind = DAEMON_SETS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._refused_until: dict[str, float] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource == NODES:
            return [objects.key(daemon_set) for daemon_set in self._executor.cache.list(DAEMON_SETS)]
        owner = objects.controller(obj) if resource == PODS else None
        ours = owner is not None and owner.get("kind") == DAEMON_SETS.kind
        return [f"{objects.namespace(obj)}/{owner['name']}"] if owner and ours else []

    async def sync(self, key: str) -> float | None:
        daemon_set = self._executor.cache.get(DAEMON_SETS, key)
        if daemon_set is None:
            self._refused_until.pop(key, None)
            return None
        plan = self._plan(daemon_set)
        await self._executor.delete_pods(DAEMON_SETS, daemon_set, plan.delete)
        left = self._refused_until.get(key, 0.0) - self._executor.clock.monotonic()
        if plan.create and left <= 0:
            made = await self._executor.create_pods(DAEMON_SETS, daemon_set, plan.create)
            left = _REFUSED_PAUSE_S if made.failure else 0.0
            self._refused_until[key] = self._executor.clock.monotonic() + left
        daemon_set = self._executor.cache.get(DAEMON_SETS, key) or daemon_set
        await self._executor.publish(DAEMON_SETS, daemon_set, self._plan(daemon_set).status)
        return left if plan.create and left > 0 else None

    def _plan(self, daemon_set: Object) -> daemon_plan.DaemonPlan:
        pods = self._executor.cache.list(PODS, objects.namespace(daemon_set))
        ours = [pod for pod in pods if (objects.controller(pod) or {}).get("uid") == objects.uid(daemon_set)]
        return daemon_plan.plan(daemon_set, ours, self._executor.cache.list(NODES), self._executor.clock.wall())
