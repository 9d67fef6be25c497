"""Nodes that share GPUs by replicas next to nodes that grant whole ones under the same resource. Pure.

A pod that only counts GPUs may then get a replica on one node or a whole GPU on another, by where it is placed.
"""

from collections.abc import Iterable

from lamina.core.gpus import Inventory
from lamina.core.sharing import GPU
from lamina.operations.doctor.finding import Finding, State

_SHOWN = 5


def mixed_sharing(inventories: Iterable[Inventory]) -> list[Finding]:
    """A warning if counting one resource means different things on different nodes; nothing otherwise."""
    listed = sorted(inventories, key=lambda each: each.node)
    sharing = [each.node for each in listed if _replicas(each) > 1]
    whole = [each.node for each in listed if _replicas(each) <= 1 and any(gpu.by_grant for gpu in each.gpus)]
    if not sharing or not whole:
        return []
    found = f"a pod that requests only {GPU} gets a replica on {_names(sharing)}, and a whole GPU on {_names(whole)}"
    fix = (
        "for a replica, give such pods the nodeSelector nvidia.com/gpu.sharing-strategy: time-slicing (or mps); "
        "for a whole GPU, the nodeSelector nvidia.com/gpu.sharing-strategy: none"
    )
    return [Finding("sharing of GPUs", State.WARNING, found, fix)]


def _replicas(inventory: Inventory) -> int:
    """How many pods that count GPUs share one; 0 where the node offers none natively."""
    return max((each.replicas for each in inventory.native_resources if each.resource == GPU), default=0)


def _names(nodes: list[str]) -> str:
    more = len(nodes) - _SHOWN
    return f"{', '.join(nodes[:_SHOWN])}{f' and {more} more nodes' if more > 0 else ''}"
