"""The StatefulSet controller: revisions first, then the pods, then the status."""

from collections.abc import Iterable

from lamina.ports.kube import PODS, STATEFUL_SETS, AlreadyExists, Object, Resource
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import CONTROLLER_REVISIONS
from lamina_lab.controllers.framework.ownership import sort_children
from lamina_lab.controllers.framework.replicas import available_in
from lamina_lab.controllers.statefulset import plan as stateful_plan
from lamina_lab.controllers.statefulset import revisions as history
from lamina_lab.controllers.statefulset.status import status_of
from lamina_lab.kubernetes import objects

_REFUSED_PAUSE_S = 5.0


class StatefulSetController:
    """The controller of StatefulSets."""

    kind = STATEFUL_SETS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._refused_until: dict[str, float] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource not in (PODS, CONTROLLER_REVISIONS):
            return []
        owner = objects.controller(obj)
        if owner is not None:
            return [f"{objects.namespace(obj)}/{owner['name']}"] if owner.get("kind") == STATEFUL_SETS.kind else []
        sets = self._executor.cache.list(STATEFUL_SETS, objects.namespace(obj))
        return [objects.key(one) for one in sets if sort_children(one, self._candidates(one, [obj])).adopt]

    async def sync(self, key: str) -> float | None:
        stateful_set = self._executor.cache.get(STATEFUL_SETS, key)
        if stateful_set is None:
            self._refused_until.pop(key, None)
            return None
        known = await self._revisions_of(stateful_set)
        revisions = history.of(stateful_set, known)
        if revisions is None:
            return 0.0  # the name of its revision was taken; the next one is tried
        waits = await self._manage(key, stateful_set, revisions)
        stateful_set = self._executor.cache.get(STATEFUL_SETS, key) or stateful_set
        pods, now = await self._pods_of(stateful_set), self._executor.clock.wall()
        await self._executor.publish(STATEFUL_SETS, stateful_set, status_of(stateful_set, pods, revisions, now))
        if not objects.is_deleting(stateful_set):
            await self._executor.perform(history.forget(stateful_set, known, pods, revisions))
        min_ready_s = float(objects.spec(stateful_set).get("minReadySeconds") or 0)
        if (soon := available_in(pods, min_ready_s, now)) is not None:
            waits.append(soon + 1.0)  # the time of readiness is in whole seconds
        return min(waits, default=None)

    async def _revisions_of(self, stateful_set: Object) -> list[Object]:
        """Its revisions, with the one for its template now."""
        known = await self._owned_revisions(stateful_set)
        if objects.is_deleting(stateful_set) or not (actions := history.plan(stateful_set, known)):
            return known
        try:
            await self._executor.perform(actions)
        except AlreadyExists:
            count = int(objects.status(stateful_set).get("collisionCount") or 0)
            await self._executor.publish(STATEFUL_SETS, stateful_set, {"collisionCount": count + 1})
        return await self._owned_revisions(stateful_set)

    async def _owned_revisions(self, stateful_set: Object) -> list[Object]:
        found = self._executor.cache.list(CONTROLLER_REVISIONS, objects.namespace(stateful_set))
        return await self._executor.own(STATEFUL_SETS, stateful_set, CONTROLLER_REVISIONS, found)

    async def _pods_of(self, stateful_set: Object) -> list[Object]:
        pods = self._executor.cache.list(PODS, objects.namespace(stateful_set))
        found = self._candidates(stateful_set, pods)
        return await self._executor.own(STATEFUL_SETS, stateful_set, PODS, found)

    def _candidates(self, stateful_set: Object, children: Iterable[Object]) -> list[Object]:
        """A pod with another name is never one of the set's. Revisions may have any name."""
        return [
            child
            for child in children
            if child.get("kind") != PODS.kind or stateful_plan.ordinal_of(stateful_set, child) is not None
        ]

    async def _manage(self, key: str, stateful_set: Object, revisions: history.Revisions) -> list[float]:
        """Create and delete pods. Returns the seconds after which to try again, if it is not possible now."""
        pods = await self._pods_of(stateful_set)
        plan = stateful_plan.plan(stateful_set, pods, revisions, self._executor.clock.wall())
        await self._executor.delete_pods(STATEFUL_SETS, stateful_set, plan.delete)
        left = self._refused_until.get(key, 0.0) - self._executor.clock.monotonic()
        if plan.create and left <= 0:
            made = await self._executor.create_pods(STATEFUL_SETS, stateful_set, plan.create)
            left = _REFUSED_PAUSE_S if made.failure else 0.0
            self._refused_until[key] = self._executor.clock.monotonic() + left
        return [left] if plan.create and left > 0 else []
