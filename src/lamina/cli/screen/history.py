"""What was used and how busy it was in the last readings, as percentages, for the curves of the screen."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from lamina.cli.screen.columns import Filled, busy_of, memory_of_gpu, memory_of_pod
from lamina.cli.screen.rows import PodLine
from lamina.report.gpus import GpuRow

_KEPT = 120
"""Readings. Percentages are small integers, so those of 10,000 shares take little memory."""
ALL = "all"
"""The key of all GPUs together."""


class RowPast(NamedTuple):
    """The last readings of one row, the newest last; None was not known."""

    memory: deque[int | None]
    busy: deque[int | None]


class GpuTotals(NamedTuple):
    """All GPUs together. Memory is in MiB; what is used and busy counts those that say so."""

    gpus: int
    memory_mib: int
    used_mib: int | None
    granted_mib: int | None
    busy_percent: float | None

    @property
    def memory(self) -> Filled:
        """The bar of the memory."""
        whole = self.memory_mib or None
        parts = [
            None if value is None or whole is None else value / whole for value in (self.used_mib, self.granted_mib)
        ]
        return Filled(parts[0], parts[1])


def totals(rows: Iterable[GpuRow]) -> GpuTotals:
    """The sums over these GPUs."""
    rows = list(rows)
    busy = [row.busy_percent for row in rows if row.busy_percent is not None]
    return GpuTotals(
        len(rows),
        sum(row.memory_mib for row in rows),
        _sum(row.memory_used_mib for row in rows),
        _sum(row.memory_granted_mib for row in rows),
        sum(busy) / len(busy) if busy else None,
    )


class TopHistory:
    """The past of each row that the last reading has."""

    def __init__(self) -> None:
        self._past: dict[Hashable, RowPast] = {}

    def add(self, gpus: Iterable[GpuRow], pods: Iterable[PodLine]) -> None:
        """Take in one reading. Rows that it lacks are forgotten."""
        before, self._past = self._past, {}
        gpus = list(gpus)
        summed = totals(gpus)
        of_all = ALL, summed.memory.used, None if summed.busy_percent is None else summed.busy_percent / 100
        for key, memory, busy in [of_all, *_of_gpus(gpus), *_of_pods(pods)]:
            past = self._past[key] = before.get(key) or RowPast(deque(maxlen=_KEPT), deque(maxlen=_KEPT))
            past.memory.append(_percent(memory))
            past.busy.append(_percent(busy))

    def of(self, key: Hashable) -> RowPast:
        """The past of a row; empty for one that the last reading does not have."""
        return self._past.get(key) or RowPast(deque(), deque())


def key_of(row: PodLine | GpuRow) -> Hashable:
    """What tells a row from all others, in all readings."""
    return row.gpu if isinstance(row, GpuRow) else (row.namespace, row.pod, row.container, row.gpu)


def _of_gpus(rows: Iterable[GpuRow]) -> Iterator[tuple[Hashable, float | None, float | None]]:
    return ((key_of(row), memory_of_gpu(row).used, busy_of(row).used) for row in rows)


def _of_pods(rows: Iterable[PodLine]) -> Iterator[tuple[Hashable, float | None, float | None]]:
    return ((key_of(row), memory_of_pod(row).used, busy_of(row).used) for row in rows)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _percent(value: float | None) -> int | None:
    return None if value is None else min(100, round(value * 100))
