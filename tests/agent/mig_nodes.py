"""Nodes whose GPUs support MIG, and the steps of their pods."""

from pathlib import Path

from msgspec import structs

from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.gpus import Mode
from lamina.core.grants import MigInstance, Share
from lamina.ports.nvml.fake import fake_gpus
from tests.agent.node import Node, container

FACTS = [
    structs.replace(gpu, mig_capable=True, pci_device=0x20B010DE)
    for gpu in fake_gpus(2, name="NVIDIA A100-SXM4-40GB", memory_mib=40960)
]
GPU = FACTS[0].uuid


def instance(profile: str = "1g.5gb", start: int = 6, *, gpu: str = GPU) -> Share:
    return Share(gpu=gpu, memory_mib=3000, mode=Mode.MIG, mig=MigInstance(profile=profile, start=start))


def partitioned_node(root: Path) -> Node:
    """A node of two A100 with 40 GB."""
    return Node(root, facts=FACTS)


async def admitted(node: Node, name: str, *shares: Share) -> str:
    """A pod of one container with these shares, which kubelet has admitted; its CDI name."""
    await node.pod(name, container("main", *shares))
    tickets = [f"ticket-{name}-{number}" for number in range(len(shares))]
    return (await node.admit(name, {"main": tickets}))["main"]


async def start(node: Node, name: str, count: int = 1) -> None:
    """What kubelet does before each start of the pod's container."""
    await node.preparer.prepare([f"ticket-{name}-{number}" for number in range(count)])


def look(node: Node) -> None:
    """The agent looks at its GPUs."""
    node.gpus = {each.uuid: ObservedGpu(each) for each in node.nvml.present}


def on(node: Node, gpu: str = GPU) -> bool:
    return next(each.mig_enabled for each in node.nvml.present if each.uuid == gpu)
