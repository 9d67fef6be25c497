"""The controller that says on each DeviceTaintRule whether pods still have to be evicted."""

from collections.abc import Iterable

from lamina.ports.kube import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, Object, Resource
from lamina_lab.controllers.device_taint import plan
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.kubernetes import objects

_SAID = ("status", "reason", "message", "observedGeneration")


class TaintProgressController:
    """Writes the condition `EvictionInProgress`."""

    kind = DEVICE_TAINT_RULES

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource not in (RESOURCE_CLAIMS, PODS):
            return []
        return [objects.key(rule) for rule in self._executor.cache.list(DEVICE_TAINT_RULES)]

    async def sync(self, key: str) -> float | None:
        cache = self._executor.cache
        rule = cache.get(DEVICE_TAINT_RULES, key)
        if rule is None:
            return None
        now = self._executor.clock.wall()
        wanted = plan.condition(rule, cache.list(RESOURCE_CLAIMS), lambda name: cache.get(PODS, name), now)
        before = objects.condition(rule, plan.EVICTING) or {}
        if any(before.get(field) != wanted[field] for field in _SAID):
            if before.get("status") == wanted["status"]:
                wanted["lastTransitionTime"] = before["lastTransitionTime"]
            others = [each for each in objects.status(rule).get("conditions") or () if each["type"] != plan.EVICTING]
            change: Object = {"status": {"conditions": [*others, wanted]}}
            await self._executor.patch(DEVICE_TAINT_RULES, rule, change, "status")
        return None
