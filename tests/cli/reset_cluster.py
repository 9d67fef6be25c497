"""A cluster that `lamina reset` cleans up."""

from lamina import configuration
from lamina.admission.webhook_configuration import webhook_configuration
from lamina.controller import crds
from lamina.core.component_names import DEFAULT_NAMESPACE, LEADER_LEASE
from lamina.core.gpus import Gpu, Inventory
from lamina.core.objects import write_spec
from lamina.operations.reset import Reset
from lamina.ports.clock import FakeClock
from lamina.ports.kube import (
    INVENTORIES,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
)
from lamina.ports.kube.fake import FakeKube

GPU = Gpu(uuid="GPU-0", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360)


async def half_gone() -> FakeKube:
    """A cluster with the webhook, one node whose agent took its GPUs back, and one whose agent is dead."""
    made = FakeKube()
    await crds.apply(made)
    await made.create(
        MUTATING_WEBHOOKS,
        webhook_configuration(configuration.DEFAULT, {"url": "https://x"}, b"ca", namespace=DEFAULT_NAMESPACE),
    )
    await made.create(LEASES, {"metadata": {"name": LEADER_LEASE, "namespace": "lamina-system"}})
    await made.create(LEASES, {"metadata": {"name": "another", "namespace": "lamina-system"}})
    for name, gpus in (("gone", ()), ("dead", (GPU,))):
        spec = write_spec(Inventory(node=name, gpus=gpus))
        await made.create(INVENTORIES, {"metadata": {"name": name}, "spec": spec})
    await made.create(NODES, {"metadata": {"name": "gone", "labels": {"own": "kept"}}})
    labels, annotations = {"own": "kept", "nvidia.com/gpu.count": "1"}, {"hami.io/node-nvidia-register": "[]"}
    capacity = {"cpu": "8", "volcano.sh/vgpu-cores": "100", "nvidia.com/gpu": "0", "volcano.sh/vgpu-number": "10"}
    status = {"capacity": capacity, "allocatable": dict(capacity)}
    await made.create(
        NODES, {"metadata": {"name": "dead", "labels": labels, "annotations": annotations}, "status": status}
    )
    return made


async def run(kube: FakeKube, *, everything: bool = False) -> list[str]:
    clock = FakeClock()
    return [step async for step in Reset(kube, clock, patience_s=0).run(everything=everything)]
