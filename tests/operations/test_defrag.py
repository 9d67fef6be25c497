"""`lamina defrag` over a cluster whose controllers and agent are played here."""

import pytest

from lamina.errors import Outside
from lamina.model.gpus import CORDON
from lamina.operations.cluster_view import read
from lamina.operations.defrag import Defragmentation
from lamina.ports.clock import FakeClock
from lamina.ports.kube import DISRUPTION_BUDGETS, GRANTS, INVENTORIES, NODES, PODS, Object, Patch, Resource
from lamina.ports.kube.fake import FakeKube
from tests.operations.clusters import container, grant, inventory, pod

MIB = 2000


class Jumping(FakeClock):
    """A clock on which a pause takes no time."""

    async def sleep(self, seconds: float) -> None:
        self._now += seconds


class Cluster(FakeKube):
    """One node with 2 GPUs. Its agent reports cordons, and controllers replace evicted pods on the GPU `target`."""

    def __init__(self, target: str = "GPU-n-1", *, agent: bool = True) -> None:
        super().__init__()
        self.target, self.agent = target, agent
        self.cordons: list[str] = []

    async def fill(self, **gpus: str) -> None:
        """A pod on each of these GPUs, by name."""
        from lamina.api.v1alpha1.conversion import write_inventory

        await self.create(NODES, {"metadata": {"name": "n"}})
        spec = write_inventory(inventory(gpus=2))
        await self.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": spec})
        for name, gpu in gpus.items():
            await self.place(name, gpu)

    async def place(self, name: str, gpu: str) -> None:
        made = pod(name, container(gpu=1, gpumem=MIB), node="n")
        made["metadata"]["ownerReferences"] = [{"uid": "set", "controller": True, "kind": "ReplicaSet", "name": "s"}]
        made["metadata"]["labels"] = {"app": "s"}
        await self.create(PODS, made)
        await self.create(GRANTS, grant(made, "n", MIB, gpu))

    async def evict(self, pod: str, *, namespace: str, uid: str) -> None:
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


async def defragment(kube: FakeKube) -> list[str]:
    work = Defragmentation(kube, Jumping(), patience_s=60)
    return [line async for line in work.run(await read(kube), 20)]


async def test_the_pods_of_a_gpu_move_and_it_is_idle() -> None:
    kube = Cluster()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    assert await defragment(kube) == ["Moved default/a.", "GPU 0 of node n is idle."]
    assert kube.evicted == ["a"]
    assert kube.cordons == ["GPU-n-0", ""], "cordoned while the pod moves, and not longer"


@pytest.mark.parametrize(
    ("target", "agent", "reason", "evicted"),
    [
        ("", True, "no pod runs in place of default/a after 60 s", ["a"]),
        ("GPU-n-0", True, "default/a-new was placed on the GPU that was to become idle", ["a"]),
        ("GPU-n-1", False, "does not report GPU GPU-n-0 as cordoned; no pod was moved", []),
    ],
)
async def test_the_plan_is_aborted_when_a_step_does_not_happen(
    target: str, agent: bool, reason: str, evicted: list[str]
) -> None:
    kube = Cluster(target, agent=agent)
    await kube.fill(a="GPU-n-0", d="GPU-n-0", b="GPU-n-1", c="GPU-n-1", e="GPU-n-1")
    with pytest.raises(Outside, match=reason):
        await defragment(kube)
    assert kube.evicted == evicted, "the other pod of the GPU stays"
    assert kube.cordons[-1] == "", "nothing stays cordoned"


async def test_a_disruption_budget_holds() -> None:
    kube = Cluster()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    budget = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "s"}}},
        "status": {"disruptionsAllowed": 0},
    }
    await kube.create(DISRUPTION_BUDGETS, budget)
    with pytest.raises(Outside, match=r"pod default/a cannot be evicted: .*disruption budget"):
        await defragment(kube)
    assert {each["metadata"]["name"] for each in (await kube.list(PODS)).items} == {"a", "b", "c"}
    assert kube.cordons[-1] == ""


async def test_a_gpu_that_was_cordoned_stays_cordoned() -> None:
    kube = Cluster()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    await kube.patch(NODES, "n", {"metadata": {"annotations": {CORDON: "GPU-n-0"}}})
    assert await defragment(kube) == ["Moved default/a.", "GPU 0 of node n is idle."]
    assert kube.cordons == ["GPU-n-0"]
