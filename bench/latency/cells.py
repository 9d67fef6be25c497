"""The conditions under which the latency of requests is measured, and the modes in which containers share. Pure."""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import Struct

from bench.compute.matrix import H200_SLICE_US, H200_SWITCH_US
from bench.compute.runs import Load
from lamina.core.grants import ComputePolicy

REQUESTS_MS = (0.4, 4.0, 40.0, 2000.0)
TRAINS_MS = ((0.02,), (0.1,), (0.2,), (0.02, 0.1, 0.2))
"""Kernels of a request; the last ones are mixed."""
LOADS = (0.1, 0.3, 0.5, 0.7)
NEIGHBORS = (1, 2, 4)
NEIGHBORS_MS = (0.1, 1.0, 10.0, 100.0)
WAYS = ("loop", "async", "graph")
SLICES_US = (200, 2000, 5000)
REQUESTS, LEAST_S, MOST_S = 1000, 10.0, 60.0
"""The number of requests of a run, as long as it takes no less and no more time than this."""
MOST_GRAPH_MS = 100
"""A graph runs as a whole, so graphs of long kernels have few."""
SEED = 7


class Cell(Struct, frozen=True, kw_only=True):
    """Requests that arrive in an open loop, next to a number of equal neighbors. `load` is the part of the GPU's time
    that the requests need."""

    request_ms: float
    train_ms: tuple[float, ...]
    load: float
    neighbors: int
    neighbor: Load
    slice_us: int
    switch_us: int = 0

    @property
    def name(self) -> str:
        train = "+".join(f"{ms:g}" for ms in self.train_ms)
        return (
            f"{self.request_ms:g} ms of {train} ms at {self.load:g}, next to {self.neighbors} {self.neighbor.how} "
            f"{self.neighbor.kernel_ms:g} ms, {self.slice_us / 1000:g} ms slices"
        )

    @property
    def kernels(self) -> int:
        """Of a request."""
        return max(1, round(self.request_ms * len(self.train_ms) / sum(self.train_ms)))

    @property
    def work_ms(self) -> float:
        """What a request needs of the GPU's time: its kernels go round."""
        rounds, rest = divmod(self.kernels, len(self.train_ms))
        return rounds * sum(self.train_ms) + sum(self.train_ms[:rest])

    @property
    def apart_s(self) -> float:
        """From one request to the next, on average."""
        return self.work_ms / 1000 / self.load

    @property
    def seconds(self) -> float:
        """How long requests come."""
        return min(MOST_S, max(LEAST_S, REQUESTS * self.apart_s))

    def moments(self, hurry: int = 1) -> list[float]:
        """When requests come, in seconds since the first could: always the same."""
        source, moments, last = random.Random(SEED), [], 0.0
        while (last := last + source.expovariate(1 / self.apart_s)) < self.seconds / hurry:
            moments.append(last)
        return moments or [0.0]


class Mode(Struct, frozen=True, kw_only=True):
    """How the containers share. The limits are those of `Bench.ours`; None is no facade, for null controls."""

    name: str
    request: Mapping[str, Any] | None
    neighbor: Mapping[str, Any] | None
    mps: tuple[int, int] | None = None
    """For clients of MPS: percent of the processors for requests, and for each neighbor."""


def modes(neighbors: int) -> Iterator[Mode]:
    """Half of the GPU is for the requests, where a mode has shares; the rest is for the neighbors."""
    part = 50 // neighbors
    none = {"policy": ComputePolicy.NONE}
    yield Mode(name="none", request=none, neighbor=none)
    for policy in (ComputePolicy.CAP, ComputePolicy.WEIGHT):
        half, rest = ({"cores": cores, "policy": policy} for cores in (50, part))
        yield Mode(name=policy.value, request=half, neighbor=rest)
    yield Mode(name="priority", request={"priority": 0}, neighbor={"priority": 1})
    lent = [{"cores": cores, "most": most, "policy": ComputePolicy.WEIGHT} for cores, most in ((50, 100), (part, 60))]
    yield Mode(name="request-limit", request=lent[0], neighbor=lent[1])
    yield Mode(name="mps", request=None, neighbor=None, mps=(50, part))


PLAIN = Mode(name="plain time slicing", request=None, neighbor=None)


def cells() -> list[Cell]:
    """All of them: each way, slice and number goes round over all requests, trains, loads and neighbors' kernels."""
    conditions = product(SLICES_US, NEIGHBORS, WAYS, NEIGHBORS_MS, LOADS, TRAINS_MS, REQUESTS_MS)
    return [
        Cell(
            request_ms=request_ms,
            train_ms=train_ms,
            load=load,
            neighbors=neighbors,
            neighbor=_neighbor(how, kernel_ms),
            slice_us=slice_us,
        )
        for slice_us, neighbors, how, kernel_ms, load, train_ms, request_ms in conditions
    ]


def chosen(every: int) -> list[Cell]:
    """Each Nth cell of a fixed order without order, so that few cells have all values."""
    found = cells()
    random.Random(SEED).shuffle(found)
    return found[::every]


def goals() -> list[Cell]:
    """The cells that the latency class is judged by: a request of 4 ms on a GPU with the slices of an H200."""
    return _next_to_training(1, (0.1, 1.0))


def crowded() -> list[Cell]:
    """As the goals, next to several containers."""
    return [cell for neighbors in NEIGHBORS[1:] for cell in _next_to_training(neighbors, (1.0,))]


def _next_to_training(neighbors: int, kernels_ms: Sequence[float]) -> list[Cell]:
    return [
        Cell(
            request_ms=4.0,
            train_ms=(0.1,),
            load=load,
            neighbors=neighbors,
            neighbor=_neighbor("loop", kernel_ms),
            slice_us=H200_SLICE_US,
            switch_us=H200_SWITCH_US,
        )
        for load in (0.1, 0.5)
        for kernel_ms in kernels_ms
    ]


def _neighbor(how: str, kernel_ms: float) -> Load:
    burst = min(10, max(1, int(MOST_GRAPH_MS / kernel_ms))) if how == "graph" else 10
    return Load(cores=0, how=how, kernel_ms=kernel_ms, burst=burst)
