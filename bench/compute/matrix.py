"""The conditions under which compute limits must hold: containers, what they do, and the length of time slices. Pure.

All pairs of kernel lengths are there with equal and with unequal shares, at each length of time slices; the ways to
launch go round, so that each meets each kernel length and slice.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, cycle, product

from msgspec import Struct, structs

from bench.compute.runs import Load

SLICES_US = (200, 500, 1000, 2000, 5000, 30000)
KERNELS_MS = (0.02, 0.1, 1.0, 10.0, 100.0)
WAYS = ("loop", "sync", "graph", "copies")
MAX_GRAPH_MS = 100
"""A graph runs as a whole: of a longer one no share could be held within seconds."""
OVER_POINTS, SHORT_POINTS = 3.0, 5.0
"""How far a cap may be exceeded, and a share missed."""
H200_SLICE_US, H200_SWITCH_US = 2370, 150
"""As measured on an H200: how long a turn is, and how long nothing runs when another process gets its turn."""
SHORT_MS = 1.0
"""Launches that are shorter than a time slice. Next to longer ones there are no launch windows."""


class Cell(Struct, frozen=True, kw_only=True):
    """Containers that work at the same time on a GPU with such time slices."""

    slice_us: int
    switch_us: int = 0
    loads: tuple[Load, ...]

    @property
    def name(self) -> str:
        each = ", ".join(f"{load.cores} % {load.how} {load.kernel_ms:g} ms" for load in self.loads)
        switch = f" and {self.switch_us / 1000:g} ms between processes" if self.switch_us else ""
        return f"{self.slice_us / 1000:g} ms slices{switch}: {each}"


def cells() -> list[Cell]:
    """The whole matrix."""
    ways = cycle(WAYS)
    return [
        Cell(slice_us=slice_us, loads=tuple(_load(cores, ms, next(ways)) for cores, ms in group))
        for slice_us in SLICES_US
        for group in _groups()
    ]


def switching() -> list[Cell]:
    """The cells of short launches on a GPU that loses time as an H200 does when it changes between processes."""
    return [
        structs.replace(cell, slice_us=H200_SLICE_US, switch_us=H200_SWITCH_US)
        for cell in cells()
        if cell.slice_us == SLICES_US[0] and all(_launch_ms(load) <= SHORT_MS for load in cell.loads)
    ]


def _launch_ms(load: Load) -> float:
    return load.kernel_ms * (load.burst if load.how == "graph" else 1)


def on_the_card() -> list[tuple[Cell, tuple[float, ...]]]:
    """What containers got on an H200 with an agent that asks NVML, in percent; see docs/measurements-sharing.md."""
    rows = [
        ([(30, 10.0), (70, 10.0)], (29.7, 65.6)),
        ([(50, 0.1), (50, 10.0)], (46.2, 45.2)),
        ([(25, 10.0), (25, 0.1), (25, 1.0), (25, 10.0)], (21.7, 22.0, 24.8, 21.7)),
        ([(30, 0.1), (60, 100.0)], (28.9, 53.1)),
    ]
    return [(_loops(H200_SLICE_US, group, switch_us=H200_SWITCH_US), got) for group, got in rows]


def known_failures() -> list[Cell]:
    """What went wrong where the length of time slices was taken for 2 ms."""
    loops = [(500, (50, 0.1), (50, 10.0)), (500, (30, 0.1), (60, 1.0)), (2000, (50, 1.0), (50, 10.0))]
    return [_loops(slice_us, group) for slice_us, *group in loops]


def _loops(slice_us: int, group: Sequence[tuple[int, float]], switch_us: int = 0) -> Cell:
    loads = tuple(_load(cores, ms, "loop") for cores, ms in group)
    return Cell(slice_us=slice_us, switch_us=switch_us, loads=loads)


def _load(cores: int, kernel_ms: float, how: str) -> Load:
    burst = min(10, int(MAX_GRAPH_MS / kernel_ms)) if how == "graph" else 10
    return Load(cores=cores, how=how, kernel_ms=kernel_ms, burst=burst)


def _groups() -> Iterator[Sequence[tuple[int, float]]]:
    """Shares and kernel lengths of pairs, triples and four."""
    for a, b in combinations_with_replacement(KERNELS_MS, 2):
        yield (50, a), (50, b)
    for a, b in product(KERNELS_MS, repeat=2):
        yield (30, a), (60, b)
    for first, second, third in combinations(KERNELS_MS, 3):
        yield (20, first), (30, second), (50, third)
    yield tuple((25, ms) for ms in (0.1, 0.1, 0.1, 0.1))
    yield tuple((25, ms) for ms in (0.02, 1.0, 10.0, 100.0))


def errors(cell: Cell, got: Sequence[float], alone: Sequence[float]) -> list[float]:
    """In points, by container; 0 where a share is neither exceeded nor missed. `alone` is what each loop gets without
    limits and other containers: time that it leaves unused even then is not taken from it by a limit."""
    found = []
    for load, percent, most in zip(cell.loads, got, alone, strict=True):
        others = sum(other.cores for other in cell.loads) - load.cores
        least = min(load.cores, most - others)
        found.append(min(0.0, percent - least) + max(0.0, percent - load.cores))
    return found


def kept(found: Sequence[float]) -> bool:
    return all(-SHORT_POINTS <= error <= OVER_POINTS for error in found)
