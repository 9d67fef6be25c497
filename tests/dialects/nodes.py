"""Nodes as the agent describes them to dialects, and the page that documents what dialects write on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lamina.core.gpu_facts import GpuFacts
from lamina.core.gpus import Gpu, Inventory, NativeResource
from lamina.dialects.metadata import NodeFacts

NODE_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "node-objects.md").read_text()
A100 = GpuFacts("GPU-a", 0, "NVIDIA A100-PCIE-40GB", 40960, mig_capable=True, compute=(8, 0), pci_class=(3, 2))


def inventory(facts: Sequence[GpuFacts], offered: Sequence[NativeResource] = ()) -> Inventory:
    """The unpartitioned ones of these GPUs: native devices of the first resource, else shared by grants."""
    native = next((each.resource for each in offered), "")
    gpus = tuple(
        Gpu(uuid=one.uuid, index=one.index, model=one.name, memory_mib=9, capacity_mib=9, native_resource=native)
        for one in facts
        if not one.mig_enabled
    )
    return Inventory(node="n", driver="515.86.01", gpus=gpus, native_resources=tuple(offered))


def described(*facts: GpuFacts, offered: Sequence[NativeResource] = (), **more: Any) -> NodeFacts:
    """A PowerEdge with these GPUs. `more` are further facts."""
    known: dict[str, Any] = {"cuda": (11, 7), "machine": "PowerEdge R750", **more}
    return NodeFacts(inventory=inventory(facts, offered), gpus=tuple(facts), **known)
