"""The controller that evicts pods whose devices have a NoExecute taint that their claims do not tolerate."""

from collections.abc import Iterable

from lamina.ports.kube import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Object, Resource
from lamina_lab.controllers.device_taint import plan
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.kubernetes import objects


class DeviceEvictionController:
    """Looks at claims, since they have the devices, the tolerations and the pods."""

    kind = RESOURCE_CLAIMS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource not in (RESOURCE_SLICES, DEVICE_TAINT_RULES):
            return []
        return [objects.key(claim) for claim in self._executor.cache.list(RESOURCE_CLAIMS) if plan.results(claim)]

    async def sync(self, key: str) -> float | None:
        cache = self._executor.cache
        claim = cache.get(RESOURCE_CLAIMS, key)
        if claim is None:
            return None
        now = self._executor.clock.wall()
        left = plan.delay_s(claim, cache.list(RESOURCE_SLICES), cache.list(DEVICE_TAINT_RULES), now)
        if left is None or left > 0:
            return left
        for pod in plan.users(claim, lambda name: cache.get(PODS, name)):
            if not objects.is_deleting(pod):
                await self._executor.record_event(PODS, pod, "DeviceTaintManagerEviction", "Marking for deletion")
                await self._executor.delete(PODS, pod)
        return None
