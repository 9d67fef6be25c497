"""The controller that creates the claims which pods name by template."""

from collections.abc import Iterable

from lamina.ports.kube import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Object, Resource
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.resource_claim import plan
from lamina_lab.kubernetes import objects


class PodClaimController:
    """A claim is created once; the pod's status then names it for the scheduler and the kubelet."""

    kind = PODS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource == RESOURCE_CLAIMS:
            owner = objects.controller(obj) or {}
            return [f"{objects.namespace(obj)}/{owner['name']}"] if owner.get("kind") == PODS.kind else []
        if resource == RESOURCE_CLAIM_TEMPLATES:
            pods = self._executor.cache.list(PODS, objects.namespace(obj))
            return [objects.key(pod) for pod in pods if _names_template(pod, objects.name(obj))]
        return []

    async def sync(self, key: str) -> float | None:
        pod = self._executor.cache.get(PODS, key)
        if pod is None or not objects.is_active(pod) or not objects.spec(pod).get("resourceClaims"):
            return None
        made = plan.made_for(pod, self._executor.cache.list(RESOURCE_CLAIMS, objects.namespace(pod)))
        for entry in objects.spec(pod)["resourceClaims"]:
            template = entry.get("resourceClaimTemplateName")
            if template and entry["name"] not in made:
                await self._make(pod, entry["name"], template, made)
        named = plan.statuses(pod, made)
        if named and named != objects.status(pod).get("resourceClaimStatuses"):
            await self._executor.patch(PODS, pod, {"status": {"resourceClaimStatuses": named}}, "status")
        return None

    async def _make(self, pod: Object, entry: str, template_name: str, made: dict[str, Object]) -> None:
        key = f"{objects.namespace(pod)}/{template_name}"
        template = self._executor.cache.get(RESOURCE_CLAIM_TEMPLATES, key)
        if template is None:
            message = f'PodResourceClaim {entry}: resource claim template "{template_name}" not found'
            await self._executor.record_event(PODS, pod, "FailedResourceClaimCreation", message, warning=True)
            return
        made[entry] = await self._executor.create(RESOURCE_CLAIMS, plan.from_template(pod, entry, template))


def _names_template(pod: Object, template: str) -> bool:
    entries = objects.spec(pod).get("resourceClaims") or ()
    return any(entry.get("resourceClaimTemplateName") == template for entry in entries)
