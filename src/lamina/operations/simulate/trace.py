"""Traces in the format of `trace_rows` as nodes and pods of a simulation.

A share is the same part of a GPU's memory and of its compute. The trace has no memory sizes, so a card that is not
known by name has 32 GiB.
"""

from pathlib import Path

from lamina.core.cards import CARDS
from lamina.core.gpus import Gpu
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.operations.simulate.trace_rows import NodeOfTrace, PodOfTrace, node_rows, pod_rows
from lamina.simulation.workload import SimNode, SimPod

_UNKNOWN_MIB = 32768
_SLOTS = 100


def nodes(path: Path) -> list[SimNode]:
    """The nodes of the list. Raises BadInput."""
    return [_node(row) for row in node_rows(path)]


def pods(path: Path) -> list[SimPod]:
    """The pods of the list, in its order. Raises BadInput."""
    return [_pod(row) for row in pod_rows(path)]


def _node(row: NodeOfTrace) -> SimNode:
    card = CARDS.get(row.model)
    memory = card.memory_mib if card else _UNKNOWN_MIB
    gpus = tuple(
        Gpu(uuid=f"{row.name}-{i}", index=i, model=row.model, memory_mib=memory, capacity_mib=memory, slots=_SLOTS)
        for i in range(row.gpus)
    )
    return SimNode(name=row.name, cpu=row.cpu_milli, memory_mib=row.memory_mib, gpus=gpus)


def _pod(row: PodOfTrace) -> SimPod:
    request = None
    if row.gpus:
        percent = min(100, max(1, -(-row.gpu_milli // 10)))
        container = ContainerRequest(
            container="main", count=row.gpus, memory_percent=percent, cores=percent, exclusive=percent == 100
        )
        request = PodRequest(dialect="trace", containers=(container,), selector=GpuSelector(types=row.models))
    return SimPod(
        name=row.name,
        cpu=row.cpu_milli,
        memory_mib=row.memory_mib,
        request=request,
        created=row.created,
        deleted=row.deleted,
    )
