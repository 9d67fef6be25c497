"""The pods that usually come: how often each kind of request comes, and what follows from that.

Counting what arrives is all the knowledge the policy has: no pod is known before it comes.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lamina.placement.packing.cluster import REFUSED, Ask, Ints, Longs

Floats = NDArray[np.float64]
MAX_CLASSES, MAX_SHARES = 384, 128
"""What the core takes: kinds of requests, and of (count, memory, cores) among them."""


@dataclass(frozen=True)
class Mix:
    """Requests with GPUs, the most frequent first, with their counts; and the CPU that all pods asked for.

    `full_memory`, `full_cores` and `supply` describe the kinds of GPUs, as in `Cluster`.
    """

    asks: tuple[Ask, ...]
    counts: Floats
    all_cpu: float
    full_memory: Ints
    full_cores: Ints
    supply: Longs

    @classmethod
    def of(
        cls, requests: Mapping[Ask, int] | Iterable[Ask], full_memory: Ints, full_cores: Ints, supply: Longs
    ) -> "Mix":
        """The requests, reduced to the most frequent requests where there are very many.

        Requests that differ in host memory alone are one class with their mean: it is seldom what runs out.
        """
        counted = Counter(requests)
        memory: Counter[Ask] = Counter()
        merged: Counter[Ask] = Counter()
        for ask, n in counted.items():
            merged[ask._replace(memory=0)] += n
            memory[ask._replace(memory=0)] += n * ask.memory
        common: list[tuple[Ask, int]] = []
        shares: set[tuple[int, tuple[int, ...], int]] = set()
        for ask, n in merged.most_common():
            share = (ask.gpus, ask.gpu_memory, ask.gpu_cores)
            if ask.gpus and len(common) < MAX_CLASSES and (share in shares or len(shares) < MAX_SHARES):
                shares.add(share)
                common.append((ask._replace(memory=memory[ask] // n), n))
        asks = tuple(ask for ask, _ in common)
        counts = np.array([n for _, n in common], np.float64)
        all_cpu = float(sum(ask.cpu * n for ask, n in counted.items()))
        return cls(asks, counts, all_cpu, full_memory, full_cores, supply)

    @cached_property
    def accepted(self) -> NDArray[np.bool_]:
        """Which kinds each class accepts and fits: (classes, kinds)."""
        wanted = np.array([ask.gpu_memory for ask in self.asks], np.int64).reshape(len(self.asks), -1)
        cores = np.array([ask.gpu_cores for ask in self.asks], np.int64)[:, None]
        return (wanted <= self.full_memory) & (cores <= self.full_cores) & (wanted < REFUSED)

    @cached_property
    def parts(self) -> tuple[int, int]:
        """How GPU memory and compute weigh in an amount of GPU, in thousandths: as much as each is asked for.

        If no request asks for compute, unused compute is no waste.
        """
        count = np.array([ask.gpus for ask in self.asks], np.float64) * self.counts
        memory, cores = self._fractions()
        asked = float(count @ memory), float(count @ cores)
        if sum(asked) <= 0:
            return 500, 500
        part = round(1000 * asked[0] / sum(asked))
        return part, 1000 - part

    def _fractions(self) -> tuple[Floats, Floats]:
        """Parts of one GPU's memory and compute that each class asks, averaged over the kinds it accepts."""
        weight = np.where(self.accepted, np.maximum(self.supply, 1e-9), 0.0)
        weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-9)
        wanted = np.array([ask.gpu_memory for ask in self.asks], np.float64).reshape(weight.shape)
        cores = np.array([ask.gpu_cores for ask in self.asks], np.float64)[:, None]
        memory = (np.minimum(wanted / self.full_memory, 1.0) * weight).sum(axis=1)
        return memory, (np.minimum(cores / self.full_cores, 1.0) * weight).sum(axis=1)

    @cached_property
    def shares(self) -> Floats:
        """The part of one GPU of each kind that a pod of each class blocks: the larger of memory and compute.

        (classes, kinds); above 1 where the class does not fit.
        """
        wanted = np.array([ask.gpu_memory for ask in self.asks], np.float64).reshape(len(self.asks), -1)
        cores = np.array([ask.gpu_cores for ask in self.asks], np.float64)[:, None]
        return np.maximum(wanted / self.full_memory, cores / self.full_cores)

    @cached_property
    def amount(self) -> Floats:
        """GPUs that one pod of each class takes in all."""
        memory, cores = self._fractions()
        count = np.array([ask.gpus for ask in self.asks], np.float64)
        return count * (memory * self.parts[0] + cores * self.parts[1]) / 1000

    @cached_property
    def by_count(self) -> Floats:
        """Each class's part of the GPU pods."""
        return np.divide(self.counts, max(1.0, self.counts.sum()))

    @cached_property
    def by_demand(self) -> Floats:
        """Each class's part of the GPU demand."""
        demand = self.counts * self.amount
        return np.divide(demand, max(1e-9, demand.sum()))

    @cached_property
    def several(self) -> NDArray[np.bool_]:
        """Which classes ask several GPUs of a node."""
        return np.array([ask.gpus > 1 for ask in self.asks], np.bool_)

    @cached_property
    def choosy(self) -> NDArray[np.bool_]:
        """Which classes accept or fit some kinds only."""
        fitting = self.accepted @ self.supply
        return np.asarray((fitting < self.supply.sum()) & (fitting > 0))

    @property
    def all_cores_per_gpu(self) -> float:
        """CPU in thousandths of a core that all pods ask, those without GPUs too, per GPU asked."""
        return self.all_cpu / max(1e-9, float(self.counts @ self.amount))

    def cores_per_gpu(self, quantile: float) -> float:
        """CPU in thousandths of a core per GPU that this part of the GPU demand stays below."""
        cpu = np.array([ask.cpu for ask in self.asks], np.float64) / np.maximum(self.amount, 1e-9)
        order = np.argsort(cpu, kind="stable")
        reached = np.cumsum(self.by_demand[order])
        place = min(int(np.searchsorted(reached, quantile)), len(order) - 1)
        return float(cpu[order[place]])

    def scarcity(self) -> Floats:
        """How far pods that accept only some kinds need each kind: their demand against what they accept, by kind.

        Demand is scaled to the whole supply. 0: no request depends on the kind. 1: those that do would fill it.
        """
        total = float(self.supply.sum())
        fitting = self.accepted @ self.supply
        pressure = np.where(self.choosy, self.by_demand * total / np.maximum(fitting, 1), 0.0)
        return pressure @ self.accepted


WINDOW = 20_000
"""Pods with GPUs after which all counts are halved, so that the mix follows the last few tens of thousands."""


class Countable(Hashable, Protocol):
    """A request in any terms; `gpus` is 0 where it asks none."""

    @property
    def gpus(self) -> int: ...


Kind = TypeVar("Kind", bound=Countable)


class RequestCounts(Generic[Kind]):
    """Counts of requests. `arrived` is how many pods with GPUs have come in all."""

    def __init__(self) -> None:
        self.counts: dict[Kind, int] = {}
        self.arrived = 0
        self._remaining = WINDOW

    def add(self, ask: Kind) -> bool:
        """Count one more; returns whether that made the old ones fade."""
        self.counts[ask] = self.counts.get(ask, 0) + 1
        if not ask.gpus:
            return False
        self.arrived += 1
        self._remaining -= 1
        if self._remaining:
            return False
        self.counts = {ask: n // 2 for ask, n in self.counts.items() if n > 1}
        self._remaining = WINDOW // 2
        return True
