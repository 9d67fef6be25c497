"""The policies that can be compared, by name. Each says how good every node is for a pod, and may choose the GPUs."""

import ctypes
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lamina import native
from lamina.core.host_size import HostSize
from lamina.core.policies import NODE_POLICIES
from lamina.placement import node_score
from lamina.placement.packing import LIBRARY, NO_GPU, Ask, Cluster, GpuKind, Packer, ask_of
from lamina.placement.packing.ranking import best_fit
from lamina.simulation.capacity import ClusterCapacity, Floats
from lamina.simulation.workload import SimPod

Worth = tuple[Floats, NDArray[np.uint64] | None]
"""By row how good the node is, -inf where the policy would not; and its GPUs as bits, None for placement's own."""


class Chooser(Protocol):
    """A policy at work."""

    def worth(self, pod: SimPod) -> Worth: ...

    def learn(self, pods: Iterable[SimPod]) -> None:
        """These pods have come already."""

    def changed(self, row: int) -> None:
        """The node's free capacity is another one."""


class _ByUsage:
    """How full a node is: `binpack`, `spread`."""

    def __init__(self, capacity: ClusterCapacity, policy: str) -> None:
        self._capacity, self._policy = capacity, policy

    def worth(self, pod: SimPod) -> Worth:
        return node_score(self._policy, self._capacity.table.usage[: len(self._capacity.nodes)]), None

    def learn(self, pods: Iterable[SimPod]) -> None:
        return None

    def changed(self, row: int) -> None:
        return None


class _ByArrays:
    """Policies of `placement.packing`, which work on arrays of their own. Pods of several containers are left to
    how full a node is."""

    def __init__(self, capacity: ClusterCapacity) -> None:
        self._capacity = capacity
        self._rest = _ByUsage(capacity, "binpack")
        kinds: dict[GpuKind, int] = {}
        width = max(1, max((len(node.gpus) for node in capacity.nodes), default=1))
        shape = (len(capacity.nodes), width)
        self._kind = np.full(shape, -1, np.int32)
        for row, node in enumerate(capacity.nodes):
            for place, gpu in enumerate(node.gpus):
                hardware = (gpu.model, gpu.capacity_mib, gpu.cores_capacity)
                self._kind[row, place] = kinds.setdefault(hardware, len(kinds))
        self._kinds = list(kinds) or [NO_GPU]
        zeros = [np.zeros(shape, np.int32) for _ in range(3)]
        full = [np.array([kind[place] for kind in self._kinds], np.int32) for place in (1, 2)]
        self.cluster = Cluster(capacity.cpu, capacity.memory, self._kind, *zeros, *full)
        for row in range(len(capacity.nodes)):
            self.changed(row)

    def worth(self, pod: SimPod) -> Worth:
        ask = self._ask(pod)
        return self._rest.worth(pod) if ask is None else self.levels(ask)

    def learn(self, pods: Iterable[SimPod]) -> None:
        return None

    def levels(self, ask: Ask) -> tuple[Floats, NDArray[np.uint64]]:
        return best_fit(self.cluster, ask)

    def changed(self, row: int) -> None:
        for place, state in enumerate(self._capacity.state(row).gpus):
            gpu = state.gpu
            usable = gpu.healthy and not gpu.cordoned and gpu.by_grant and not state.taken.whole
            self.cluster.gpu_memory[row, place] = state.free_memory if usable else 0
            self.cluster.gpu_cores[row, place] = state.free_cores if usable else 0
            self.cluster.slots[row, place] = state.free_slots if usable else 0

    def _ask(self, pod: SimPod) -> Ask | None:
        return ask_of(pod.request, HostSize(pod.cpu, pod.memory_mib), self._kinds)


class _Packing(_ByArrays):
    """The policy of docs/concepts/packing-policy.md; it learns from the pods that come."""

    def __init__(self, capacity: ClusterCapacity) -> None:
        super().__init__(capacity)
        self._packer = Packer(ctypes.CDLL(str(native.path(LIBRARY))), self.cluster)

    def learn(self, pods: Iterable[SimPod]) -> None:
        for pod in pods:
            if (ask := self._ask(pod)) is not None:
                self._packer.arrived(ask)

    def levels(self, ask: Ask) -> tuple[Floats, NDArray[np.uint64]]:
        self._packer.arrived(ask)
        return self._packer.levels(ask)

    def changed(self, row: int) -> None:
        super().changed(row)
        if hasattr(self, "_packer"):
            self._packer.changed(row)


POLICIES: dict[str, Callable[[ClusterCapacity], Chooser]] = {
    "binpack": lambda capacity: _ByUsage(capacity, "binpack"),
    "spread": lambda capacity: _ByUsage(capacity, "spread"),
    "best-fit": _ByArrays,
    "packing": _Packing,
}
"""A policy is added by adding what makes its chooser."""
assert set(NODE_POLICIES) <= set(POLICIES), "every policy over nodes can be simulated"
