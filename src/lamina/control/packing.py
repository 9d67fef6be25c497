"""The packing policy over the cluster as it is: it learns from pods that come, and tells the best nodes and GPUs.

What nodes have of CPU and host memory is kube-scheduler's to count and not known here, so the policy weighs GPUs alone.
It begins with best fit, after each start, until the first pod has come.
"""

import ctypes
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from lamina import native
from lamina.control.capacity import Capacity
from lamina.model.gpus import Gpu
from lamina.model.policies import PACKING, chain
from lamina.model.requests import PodRequest
from lamina.placement import NodeState, NodeTable
from lamina.placement.packing import LIBRARY, REFUSED, Ask, Cluster, Packer, Seen, bits

_CPU, _HOST_MEMORY = 128_000, 1_024_000
_REMEMBERED = 10_000

_Kind = tuple[str, int, int]


class Packing:
    """Keeps the policy's arrays up to date, row by row as the table has them."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._library = ctypes.CDLL(str(native.path(LIBRARY)))
        self._seen = Seen()
        self._uids: OrderedDict[str, None] = OrderedDict()
        self._kinds: dict[_Kind, int] = {("", 1, 1): 0}
        self._stamp = 0
        self._cluster: Cluster | None = None
        self._packer: Packer | None = None

    def arrived(self, uid: str, request: PodRequest) -> None:
        """A pod has come; that it comes again says nothing new, and other policies learn nothing."""
        if uid in self._uids or PACKING not in (request.node_policy, *chain(request.gpu_policy)):
            return
        self._uids[uid] = None
        if len(self._uids) > _REMEMBERED:
            self._uids.popitem(last=False)
        packer = self._current()
        if (ask := self._ask(request)) is not None:
            packer.arrived(ask)

    def worth(self, request: PodRequest) -> NDArray[np.float64] | None:
        """How good each row of the table is; None where the pod has another policy or is not one for the arrays."""
        if request.node_policy != PACKING:
            return None
        packer = self._current()
        ask = self._ask(request)
        if ask is None:
            return None
        levels = packer.levels(ask)[0]
        # The rules of sharing decide where a pod fits; where the arrays see no room the node comes last.
        able = np.isfinite(levels)
        return np.where(able, levels, levels.min(where=able, initial=0.0) - 1.0)

    def gpus(self, request: PodRequest, node: str) -> frozenset[str]:
        """The UUIDs of the GPUs that are best on the node; none where the pod has another policy."""
        if PACKING not in chain(request.gpu_policy):
            return frozenset()
        packer, table = self._current(), self._capacity.table
        state, ask = table.state(node), self._ask(request)
        if state is None or ask is None:
            return frozenset()
        chosen = int(packer.levels(ask)[1][table.rows[node]])
        return frozenset(state.gpus[place].gpu.uuid for place in bits(chosen))

    def _ask(self, request: PodRequest) -> Ask | None:
        """The request in the arrays' terms, where they have them: one container, and no wish for single GPUs."""
        if len(request.containers) != 1 or request.wishes.uuids or request.wishes.not_uuids:
            return None
        [container] = request.containers
        memory = []
        for model, capacity, cores in self._kinds:
            wishes = request.wishes
            wanted = not wishes.types or any(part.lower() in model.lower() for part in wishes.types)
            wanted &= not any(part.lower() in model.lower() for part in wishes.not_types)
            needed = container.memory_on(capacity)
            memory.append(needed if wanted and needed <= capacity and container.cores <= cores else REFUSED)
        return Ask(0, 0, container.count, tuple(memory), container.cores)

    def _current(self) -> Packer:
        table = self._capacity.table
        if self._packer is not None and table.stamp == self._stamp:
            return self._packer
        rows = table.since(self._stamp).tolist()
        states = [(row, state) for row in rows if (state := table.states[row]) is not None]
        known = len(self._kinds)
        for _, state in states:
            for each in state.gpus:
                self._kinds.setdefault(_kind(each.gpu), len(self._kinds))
        self._stamp = table.stamp
        fits = self._cluster is not None and self._cluster.kind.shape == table.shape
        if self._packer is None or self._cluster is None or not fits or len(self._kinds) > known:
            return self._anew(table)
        for row in rows:
            self._write(self._cluster, row, table.states[row])
            self._packer.changed(row)
        return self._packer

    def _anew(self, table: NodeTable) -> Packer:
        rows, width = table.shape
        full = [np.array([kind[place] for kind in self._kinds], np.int32) for place in (1, 2)]
        zeros = [np.zeros((rows, width), np.int32) for _ in range(3)]
        cpu, memory = np.full(rows, _CPU, np.int64), np.full(rows, _HOST_MEMORY, np.int64)
        self._cluster = Cluster(cpu, memory, np.full((rows, width), -1, np.int32), *zeros, *full)
        for row, state in enumerate(table.states):
            self._write(self._cluster, row, state)
        # Counts of pods are in terms of the kinds of GPUs; what was seen of fewer kinds is not known of the new ones.
        if any(len(ask.gpu_memory) != len(self._kinds) for ask in self._seen.counts):
            self._seen = Seen()
        self._packer = Packer(self._library, self._cluster, self._seen)
        return self._packer

    def _write(self, cluster: Cluster, row: int, state: NodeState | None) -> None:
        cluster.kind[row] = -1
        for place, each in enumerate(state.gpus if state is not None else ()):
            gpu = each.gpu
            free = gpu.healthy and not gpu.cordoned and gpu.by_grant and not each.taken.whole
            cluster.kind[row, place] = self._kinds[_kind(gpu)]
            cluster.gpu_memory[row, place] = each.free_memory * free
            cluster.gpu_cores[row, place] = each.free_cores * free
            cluster.slots[row, place] = each.free_slots * free


def _kind(gpu: Gpu) -> _Kind:
    return gpu.model, gpu.capacity_mib, gpu.cores_capacity
