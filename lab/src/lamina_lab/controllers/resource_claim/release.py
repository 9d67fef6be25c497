"""The controller that frees claims: reservations of ended pods, then the allocation, then the claim itself."""

from collections.abc import Iterable

from lamina.ports.kube import PODS, RESOURCE_CLAIMS, Object, Resource
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.resource_claim import plan
from lamina_lab.kubernetes import objects


class ClaimReleaseController:
    """An allocated claim stays protected from deletion until no pod can use its devices."""

    kind = RESOURCE_CLAIMS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource != PODS:
            return []
        spec, status, namespace = objects.spec(obj), objects.status(obj), objects.namespace(obj)
        named = [entry.get("resourceClaimName") for entry in spec.get("resourceClaims") or ()]
        named += [entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()]
        named.append((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
        return [f"{namespace}/{name}" for name in named if name]

    async def sync(self, key: str) -> float | None:
        claim = self._executor.cache.get(RESOURCE_CLAIMS, key)
        if claim is None:
            return None
        status = objects.status(claim)
        users = plan.users(claim, lambda pod: self._executor.cache.get(PODS, pod))
        if not users and (status.get("allocation") or status.get("reservedFor")):
            claim = await self._executor.patch(RESOURCE_CLAIMS, claim, plan.RELEASED, "status")
        elif users != (status.get("reservedFor") or []):
            claim = await self._executor.patch(RESOURCE_CLAIMS, claim, {"status": {"reservedFor": users}}, "status")
        finalizers = objects.meta(claim).get("finalizers") or []
        if plan.PROTECTION in finalizers and not objects.status(claim).get("allocation"):
            left = [entry for entry in finalizers if entry != plan.PROTECTION]
            claim = await self._executor.patch(RESOURCE_CLAIMS, claim, {"metadata": {"finalizers": left or None}})
        if not objects.is_deleting(claim) and self._owner_ended(claim):
            await self._executor.delete(RESOURCE_CLAIMS, claim)
        return None

    def _owner_ended(self, claim: Object) -> bool:
        """Whether the claim was made for a pod that has ended. Claims of deleted pods are deleted with them."""
        owner = objects.controller(claim) or {}
        pod = self._executor.cache.get(PODS, f"{objects.namespace(claim)}/{owner.get('name')}")
        return pod is not None and objects.uid(pod) == owner.get("uid") and objects.is_finished(pod)
