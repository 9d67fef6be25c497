"""A cluster that `lamina doctor` examines."""

from typing import Any

from lamina import configuration
from lamina.admission.webhook_configuration import webhook_configuration
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.controller import crds
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.gpus import Gpu, Inventory
from lamina.core.grants import Grant, grant_name
from lamina.core.objects import write_spec
from lamina.errors import Outside
from lamina.operations.doctor.examine import examine
from lamina.operations.doctor.finding import Finding
from lamina.ports.kube import CONFIG_MAPS, GRANTS, INVENTORIES, MUTATING_WEBHOOKS, NODES, PODS, Refused
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.resources import Resource

INFO = {
    "kubeletVersion": "v1.31.2",
    "containerRuntimeVersion": "containerd://1.7.22",
    "kernelVersion": "5.15.0-112-generic",
}
TICKETS = {kind.resource: "120" if kind.unit_mib else "10" for kind in ticket_kinds(configuration.DEFAULT)}
REFUSAL = Refused("nvidia.com/gpumem-percentage must be an integer from 1 to 100, got 500")


class Patient:
    """A cluster of one node in which all is well, until a test spoils something."""

    def __init__(self) -> None:
        self.kube = FakeKube()
        self.gpu = Gpu(uuid="GPU-0", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360)
        self.inventory: Inventory | None = Inventory(node="n", driver="535.104.05", gpus=(self.gpu,))
        self.info, self.allocatable, self.labels = dict(INFO), dict(TICKETS), {"nvidia.com/gpu.present": "true"}
        self.refusal: Outside | None = REFUSAL
        self.registered = self.with_job = self.placed = self.granted = True
        self.images = {"web": "nginx"}
        self.webhooks: list[dict[str, Any]] = []
        self.text = ""

    async def findings(self, door: Any = None) -> dict[str, Finding]:
        """What the doctor finds, through another door to the same cluster if there is one."""
        kube = self.kube
        await crds.apply(kube)
        if self.registered:
            await kube.create(
                MUTATING_WEBHOOKS,
                webhook_configuration(configuration.DEFAULT, {"url": "https://x"}, b"ca", namespace=DEFAULT_NAMESPACE),
            )
        for each in self.webhooks:
            await kube.create(MUTATING_WEBHOOKS, each)
        meta: dict[str, Any] = {"name": "lamina", "namespace": "lamina-system"}
        await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": self.text}})
        node = {"metadata": {"name": "n", "labels": self.labels}}
        await kube.create(NODES, node | {"status": {"nodeInfo": self.info, "allocatable": self.allocatable}})
        if self.inventory is not None:
            await kube.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": write_spec(self.inventory)})
        for name, image in self.images.items():
            await self._pod(name, {"containers": [{"name": "main", "image": image}]})
        if self.with_job:
            await self._job()
        kube.failing["create"] = self._trial
        return {finding.check: finding for finding in await examine(door or kube)}

    async def _job(self) -> None:
        asks = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
        spec = {"schedulerName": "hami-scheduler", "containers": [{"name": "main", "image": "cuda", **asks}]}
        uid = await self._pod("job", spec | ({"nodeName": "n"} if self.placed else {}))
        if self.placed and self.granted:
            grant = Grant(pod="job", pod_uid=uid, node="n", dialect="hami", containers=())
            meta = {"name": grant_name("job", uid), "namespace": "default"}
            await self.kube.create(GRANTS, {"metadata": meta, "spec": write_spec(grant)})

    async def _pod(self, name: str, spec: dict[str, Any]) -> str:
        made = await self.kube.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        uid: str = made["metadata"]["uid"]
        return uid

    def _trial(self, resource: Resource, name: str) -> Outside | None:
        return self.refusal if (resource, name) == (PODS, "lamina-doctor") else None
