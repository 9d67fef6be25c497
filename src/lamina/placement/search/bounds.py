"""How many pods with the same request the free capacity takes at most, computed for all nodes at once.

The figure is never too small: of the rules, only those about one more container on one GPU count, and of its amounts
slots, memory and compute. So pods that exceed it cannot all be placed, and no search for their places is needed.
"""

import numpy as np

from lamina.core.gpus import Mode
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement.rules.refusal_arrays import TAKES, codes, needed_memory
from lamina.placement.state.table import Columns, Ints, NodeTable

_MAX_INSTANCES = 16
"""More MIG instances than any GPU has."""
_NO_WISHES = GpuSelector()


def most_pods(request: PodRequest, table: NodeTable) -> int:
    """How many pods with this request fit all nodes of the table together, at most."""
    rows = np.flatnonzero(table.kinds >= 0)
    columns = table.columns(rows)
    selector = None if request.selector == _NO_WISHES else request.selector
    by_node = [_most_on(container, selector, table, columns) for container in request.containers]
    return int(np.min(by_node, axis=0).sum())


def _most_on(container: ContainerRequest, selector: GpuSelector | None, table: NodeTable, columns: Columns) -> Ints:
    """By node, how many pods with this container alone fit."""
    most = container.sharing.most
    slots = columns.free_slots if most is None else np.maximum(most - columns.slots_taken, 0)
    by_gpu = np.minimum(slots, columns.free_memory // np.maximum(needed_memory(container, columns), 1))
    if container.cores:
        by_gpu = np.minimum(by_gpu, columns.free_cores // container.cores)
    by_gpu = np.where(columns.may(Mode.MIG), np.minimum(slots, _MAX_INSTANCES), by_gpu)
    if container.exclusive:
        by_gpu = np.minimum(by_gpu, 1)
    by_gpu = np.where(codes(container, selector, table, columns) == TAKES, by_gpu, 0)
    by_node: Ints = by_gpu.sum(axis=1) // container.count
    return by_node
