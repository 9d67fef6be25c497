"""Free capacity as arrays, a row for each node, and what a pod asks of it.

Kinds tell GPUs apart: GPUs of one kind have the same model and the same capacity. Memory of a GPU is in MiB and
compute in percent of its time, or in any other unit that a kind's capacity is given in too. CPU is in thousandths of
a core, host memory in MiB.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lamina.core.gpus import Mode
from lamina.core.host_size import HostSize
from lamina.core.requests import PodRequest
from lamina.placement.state.modes import accepted

REFUSED = 2**31 - 1
"""In `Ask.gpu_memory`: the pod does not accept GPUs of this kind, or they are too small for it."""

MAX_GPUS = 64
"""Distinguishable GPUs of one node."""

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

GpuKind = tuple[str, int, int]
"""Model, MiB that may be granted, percent of time that may be granted."""
NO_GPU: GpuKind = "", 1, 1
"""The arrays need one kind even where there is no GPU."""
_SHARING = Mode.QUOTA, Mode.MPS
"""The modes in which a GPU has free memory and time; which of the two a GPU is in makes no difference to the arrays."""


class Ask(NamedTuple):
    """What a pod asks: `gpus` different GPUs of one node, and the same share of each.

    `gpu_memory` has an amount for each kind, so that a percentage and a wish for a model are both written here. A pod
    that wants GPUs to itself asks a kind's full memory and cores. A pod without GPUs has `gpus` 0.
    """

    cpu: int
    memory: int
    gpus: int
    gpu_memory: tuple[int, ...]
    gpu_cores: int


@dataclass(frozen=True)
class Cluster:
    """Free capacity of n nodes with up to g GPUs each; the arrays belong to the caller, who updates them in place.

    `cpu`, `memory`: int64 (n). `kind`, `gpu_memory`, `gpu_cores`, `slots`: int32 (n, g), C order; `kind` is -1 where
    a node has no further GPU. `full_memory`, `full_cores`: int32 (kinds), the capacity of an idle GPU. The order of
    rows is the order in which equal nodes are preferred.
    """

    cpu: Longs
    memory: Longs
    kind: Ints
    gpu_memory: Ints
    gpu_cores: Ints
    slots: Ints
    full_memory: Ints
    full_cores: Ints

    def gpus_for(self, ask: Ask, rows: slice | Longs = slice(None)) -> Bools:
        """Which GPUs of these nodes could each carry a share of the pod: (rows, g)."""
        wanted = np.append(np.asarray(ask.gpu_memory, np.int32), np.int32(REFUSED))[self.kind[rows]]
        cores = max(1, ask.gpu_cores)  # even a share without compute needs some compute to be left
        return (self.gpu_memory[rows] >= wanted) & (self.gpu_cores[rows] >= cores) & (self.slots[rows] > 0)

    def feasible(self, ask: Ask, rows: slice | Longs = slice(None)) -> Bools:
        """On which of these nodes the pod fits: (rows)."""
        fits = (self.cpu[rows] >= ask.cpu) & (self.memory[rows] >= ask.memory)
        if ask.gpus:
            fits &= np.count_nonzero(self.gpus_for(ask, rows), axis=1) >= ask.gpus
        return fits

    def take(self, row: int, gpus: int, ask: Ask) -> None:
        """Count the pod on these GPUs (bits) of the node."""
        self._move(row, gpus, ask, 1)

    def release(self, row: int, gpus: int, ask: Ask) -> None:
        """Undo `take`."""
        self._move(row, gpus, ask, -1)

    def _move(self, row: int, gpus: int, ask: Ask, sign: int) -> None:
        self.cpu[row] -= sign * ask.cpu
        self.memory[row] -= sign * ask.memory
        for gpu in bits(gpus):
            self.gpu_memory[row, gpu] -= sign * ask.gpu_memory[self.kind[row, gpu]]
            self.gpu_cores[row, gpu] -= sign * ask.gpu_cores
            self.slots[row, gpu] -= sign

    def supply(self) -> Longs:
        """GPUs of each kind, whether free or not."""
        return np.bincount(self.kind[self.kind >= 0], minlength=len(self.full_memory)).astype(np.int64)


def bits(gpus: int) -> Iterator[int]:
    """The numbers of the GPUs that are set."""
    while gpus:
        lowest = gpus & -gpus
        yield lowest.bit_length() - 1
        gpus ^= lowest


def as_bits(gpus: Iterable[int]) -> int:
    """The reverse of `bits`."""
    return sum(1 << gpu for gpu in gpus)


def ask_of(request: PodRequest | None, size: HostSize, kinds: Collection[GpuKind]) -> Ask | None:
    """What a pod of this size asks, or None where the arrays cannot express it.

    They express one container with at most MAX_GPUS GPUs that names no single GPUs and accepts shared ones.
    """
    if request is None:
        return Ask(size.cpu, size.memory_mib, 0, (0,) * len(kinds), 0)
    selector = request.selector
    names_gpus = selector.uuids or selector.not_uuids or not accepted(_SHARING, selector)
    if len(request.containers) != 1 or names_gpus:
        return None
    [container] = request.containers
    if container.count > MAX_GPUS:
        return None
    memory = []
    for model, capacity, cores in kinds:
        needed = container.memory_on(capacity)
        fits = selector.accepts(model) and needed <= capacity and container.cores <= cores
        memory.append(needed if fits else REFUSED)
    return Ask(size.cpu, size.memory_mib, container.count, tuple(memory), container.cores)
