"""Best fit: the node, and on it the GPUs, where least is left over. It needs no knowledge of the pods to come."""

import numpy as np
from numpy.typing import NDArray

from lamina.placement.packing.cluster import Ask, Bools, Cluster, Longs
from lamina.placement.packing.mix import Floats

CPU_SCALE, GPU_SCALE = 128_000, 8
"""A large node: what a leftover of cores and of GPUs is measured against."""


def best_fit(cluster: Cluster, ask: Ask) -> tuple[Floats, NDArray[np.uint64]]:
    """For every node how good it is for the pod (-inf: does not fit) and its GPUs as bits: (n), (n)."""
    left = free_parts(cluster)
    able = cluster.gpus_for(ask)
    level = -(cluster.cpu - ask.cpu) / CPU_SCALE - left.sum(axis=1) / GPU_SCALE
    return np.where(cluster.feasible(ask), level, -np.inf), tightest(left, able, ask.gpus)


def free_parts(cluster: Cluster, rows: slice | Longs = slice(None)) -> Floats:
    """The smaller of the free parts of memory and compute of each GPU of these nodes, 0 to 1: (rows, g)."""
    kind = np.maximum(cluster.kind[rows], 0)
    memory = cluster.gpu_memory[rows] / cluster.full_memory[kind]
    parts = np.minimum(memory, cluster.gpu_cores[rows] / cluster.full_cores[kind])
    return np.where(cluster.kind[rows] < 0, 0.0, parts)


def tightest(left: Floats, able: Bools, count: int) -> NDArray[np.uint64]:
    """For each node, as bits, the `count` able GPUs that have least left; the first of equal ones."""
    order = np.argsort(np.where(able, left, np.inf), axis=1, kind="stable")[:, :count]
    gpus: NDArray[np.uint64] = np.left_shift(np.uint64(1), order.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return gpus
