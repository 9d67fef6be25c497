"""A node with 2 GPUs, its agent, and the controllers and the scheduler that replace evicted pods."""

from lamina.core.gpus import CORDON
from lamina.core.objects import write_spec
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Object, Patch, Resource
from lamina.ports.kube.fake import FakeKube
from tests.worlds.clusters import container, grant, inventory, pod

MIB = 2000


class FragmentedKube(FakeKube):
    """One node with 2 GPUs. Its agent reports cordons, and controllers replace evicted pods on the GPU `target`."""

    def __init__(self, target: str = "GPU-n-1", *, agent: bool = True) -> None:
        super().__init__()
        self.target, self.agent = target, agent
        self.cordons: list[str] = []

    async def fill(self, **gpus: str) -> None:
        """A pod on each of these GPUs, by name."""
        await self.create(NODES, {"metadata": {"name": "n"}})
        spec = write_spec(inventory(gpus=2))
        await self.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": spec})
        for name, gpu in gpus.items():
            await self.place(name, gpu)

    async def place(self, name: str, gpu: str) -> None:
        made = pod(name, container(gpu=1, gpumem=MIB), node="n")
        made["metadata"]["ownerReferences"] = [{"uid": "set", "controller": True, "kind": "ReplicaSet", "name": "s"}]
        made["metadata"]["labels"] = {"app": "s"}
        await self.create(PODS, made)
        await self.create(GRANTS, grant(made, "n", MIB, gpu))

    async def evict(self, pod: str, *, namespace: str, uid: str, grace_s: int | None = None) -> None:
        await super().evict(pod, namespace=namespace, uid=uid)
        if self.target:
            await self.place(f"{pod}-new", self.target)

    async def patch(
        self, resource: Resource, name: str, body: Patch, *, namespace: str = "", subresource: str = ""
    ) -> Object:
        patched = await super().patch(resource, name, body, namespace=namespace, subresource=subresource)
        if resource == NODES:
            self.cordons.append((patched["metadata"].get("annotations") or {}).get(CORDON, ""))
            if self.agent:
                found = await self.get(INVENTORIES, name)
                for gpu in found["spec"]["gpus"]:
                    gpu["cordoned"] = gpu["uuid"] == self.cordons[-1]
                await self.replace(INVENTORIES, found)
        return patched

    @property
    def evicted(self) -> list[str]:
        return [name for verb, resource, name in self.calls if verb == "evict"]
