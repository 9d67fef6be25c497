"""kube-scheduler as the one that answers: a pod with claims is created, and it is seen what it gets."""

import asyncio

from lamina.ports.kube import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, NotFound, Object
from lamina.ports.kube.client import KubeClient
from tests.cluster.allocation.inventories import CASE, node_name
from tests.cluster.allocation.wishes import NAMESPACE
from tests.waiting import until

NOT_YET = ("not found", "waiting for")
"""What kube-scheduler says of claims that it has not seen yet."""
ABSENT = "deviceclass.resource.k8s.io"
SEEN_S = 0.5
"""In this time kube-scheduler has seen slices."""


class OneNode:
    """A node without kubelet, with its slices. Pods with claims come and go on it."""

    def __init__(self, kube: KubeClient, case: int) -> None:
        self._kube = kube
        self._case = case
        self.node: Object = {}
        self.slices: list[Object] = []
        self.allocated: list[Object] = []

    async def begin(self, slices: list[Object]) -> None:
        name = node_name(self._case)
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "200"}
        status = {"capacity": capacity, "allocatable": capacity}
        labels = {CASE: str(self._case)}
        node = {"metadata": {"name": name, "labels": labels}, "status": status}
        self.node = await self._kube.create(NODES, node)
        self.slices = [await self._kube.create(RESOURCE_SLICES, each) for each in slices]
        await asyncio.sleep(SEEN_S)

    async def created(self, claims: list[Object]) -> list[Object]:
        """The claims as the API server has them."""
        return [await self._kube.create(RESOURCE_CLAIMS, each) for each in claims]

    async def scheduled(self, name: str, claims: list[Object]) -> tuple[list[Object] | None, str]:
        """The allocation of each claim, or None with the scheduler's reason. What is not scheduled is deleted."""
        named = [{"name": f"c{at}", "resourceClaimName": each["metadata"]["name"]} for at, each in enumerate(claims)]
        resources = {"claims": [{"name": each["name"]} for each in named]}
        spec = {
            "nodeSelector": {CASE: str(self._case)},
            "resourceClaims": named,
            "containers": [{"name": "main", "image": "none", "resources": resources}],
        }
        await self._kube.create(PODS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
        answer: list[str] = []

        async def answered() -> bool:
            pod = await self._kube.get(PODS, name, namespace=NAMESPACE)
            conditions = pod.get("status", {}).get("conditions") or ()
            said = [each.get("message") or "" for each in conditions if each["type"] == "PodScheduled"]
            unknown = ABSENT not in "".join(said) and any(word in "".join(said) for word in NOT_YET)
            answer[:] = [] if unknown else said
            return bool(pod["spec"].get("nodeName") or (answer and answer[0]))

        await until(answered, lambda: f"kube-scheduler does not decide about {name}")
        found = [
            await self._kube.get(RESOURCE_CLAIMS, entry["resourceClaimName"], namespace=NAMESPACE) for entry in named
        ]
        if (await self._kube.get(PODS, name, namespace=NAMESPACE))["spec"].get("nodeName"):
            self.allocated += found
            return [each["status"]["allocation"] for each in found], ""
        await self.delete(name, found)
        return None, answer[0]

    async def delete(self, pod: str, claims: list[Object]) -> None:
        await self._kube.delete(PODS, pod, namespace=NAMESPACE, grace_s=0)
        for each in claims:
            name = each["metadata"]["name"]
            try:
                await self._kube.patch(RESOURCE_CLAIMS, name, {"metadata": {"finalizers": None}}, namespace=NAMESPACE)
                await self._kube.delete(RESOURCE_CLAIMS, name, namespace=NAMESPACE)
            except NotFound:
                continue
        gone = {each["metadata"]["name"] for each in claims}
        self.allocated = [each for each in self.allocated if each["metadata"]["name"] not in gone]
        await asyncio.sleep(SEEN_S)
