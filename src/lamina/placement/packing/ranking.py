"""Which node a pod gets, with the levels of every kind of request kept between decisions.

A placement changes one node, so of what was worked out for a request before, only nodes that changed since are worked
out again. A caller that changes a row of the cluster reports it with `changed`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lamina.placement.packing.cluster import Ask, Bools, Cluster, Longs
from lamina.placement.packing.kernel import Kernel
from lamina.placement.packing.mix import Floats

MAX_KEPT = 512
"""Kinds of requests whose levels are kept; the one that was not asked for the longest gives way."""


@dataclass
class _Kept:
    levels: Floats
    gpus: NDArray[np.uint64]
    changes: int


class Ranking:
    """Levels of `nodes` nodes for any request, up to date at every call."""

    def __init__(self, kernel: Kernel, nodes: int) -> None:
        self._kernel = kernel
        self._nodes = nodes
        self._kept: dict[Ask, _Kept] = {}
        self._log: list[int] = []
        self._rows: Longs = np.zeros(nodes, np.int64)
        self._levels: Floats = np.zeros(nodes)
        self._gpus = np.zeros(nodes, np.uint64)

    def keep(self, ask: Ask, levels: Floats, gpus: NDArray[np.uint64]) -> None:
        """Take over levels of this request that were worked out elsewhere; rows are `changed` since from now on."""
        self._kept[ask] = _Kept(levels, gpus, len(self._log))

    def missed(self, ask: Ask) -> int:
        """How many rows the next `levels` would work out, at most."""
        kept = self._kept.get(ask)
        return self._nodes if kept is None else min(self._nodes, len(self._log) - kept.changes)

    def kept(self) -> list[Ask]:
        """Requests whose levels are kept, the one that was asked for last at the end."""
        return list(self._kept)

    def one(self, ask: Ask, row: int) -> tuple[float, int]:
        """Level and GPUs of one node, whatever is kept."""
        self._rows[0] = row
        self._kernel.levels(ask, self._rows, self._levels, self._gpus, 1)
        return float(self._levels[0]), int(self._gpus[0])

    def changed(self, row: int) -> None:
        """The cluster's arrays have changed in this row."""
        self._log.append(row)
        if len(self._log) > 2 * self._nodes + 1000:
            self._forget()

    def levels(self, ask: Ask) -> tuple[Floats, NDArray[np.uint64]]:
        """For every node how good it is for the pod (-inf: does not fit), and which GPUs it would get there (bits)."""
        kept = self._kept.pop(ask, None)
        if kept is None:
            kept = _Kept(np.zeros(self._nodes), np.zeros(self._nodes, np.uint64), 0)
            self._kernel.levels(ask, np.arange(self._nodes), kept.levels, kept.gpus)
        elif kept.changes < len(self._log):
            stale = list(dict.fromkeys(self._log[kept.changes :]))
            n = len(stale)
            rows = self._rows[:n]
            rows[:] = stale
            self._kernel.levels(ask, rows, self._levels, self._gpus, n)
            kept.levels[rows] = self._levels[:n]
            kept.gpus[rows] = self._gpus[:n]
        kept.changes = len(self._log)
        self._kept[ask] = kept
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept.levels, kept.gpus

    def best(self, ask: Ask) -> tuple[int, int] | None:
        """The node's row and the GPUs (bits) for the pod; None where it fits nowhere. Ties go to the first row."""
        levels, gpus = self.levels(ask)
        row = int(levels.argmax())
        return (row, int(gpus[row])) if levels[row] > -np.inf else None

    def _forget(self) -> None:
        """Shorten the log by half; levels that have missed more than the rest are computed again."""
        half = len(self._log) // 2
        del self._log[:half]
        self._kept = {ask: kept for ask, kept in self._kept.items() if kept.changes >= half}
        for kept in self._kept.values():
            kept.changes -= half


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
