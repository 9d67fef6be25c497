"""How much of the cluster was granted and stranded over the last hours, as far as this process has seen it."""

from collections import deque
from typing import NamedTuple

from lamina.operations.dashboard.document import ClusterFigures

EVERY_S = 10.0
"""The shortest time between two points."""
MOST_POINTS = 2160
"""Six hours of a cluster that changes all the time."""


class AllocationPoint(NamedTuple):
    """Percent of all GPUs from this moment on, in seconds since the epoch; None where nothing is known."""

    at: float
    memory: float | None
    compute: float | None
    stranded: float | None
    """Memory that is free on GPUs into which none of the pods of the cluster would fit."""


class AllocationHistory:
    """Points in the order of time. A clock that goes back adds none until it has caught up."""

    def __init__(self) -> None:
        self._points: deque[AllocationPoint] = deque(maxlen=MOST_POINTS)

    @property
    def last_at(self) -> float:
        """The moment of the last point; -1 before the first."""
        return self._points[-1].at if self._points else -1.0

    def note(self, now: float, figures: ClusterFigures) -> None:
        """Take in what holds now, if it differs from the last point and that is old enough."""
        memory, cores = max(1, figures.memory_mib), max(1, figures.cores)
        self._add(
            now,
            round(100 * figures.granted_mib / memory, 2),
            round(100 * figures.granted_cores / cores, 2),
            round(100 * figures.stranded_mib / memory, 2),
        )

    def lose(self, now: float) -> None:
        """From now on nothing is known, until something is noted again."""
        if self._points:
            self._add(max(now, self.last_at + EVERY_S), None, None, None)

    def since(self, moment: float) -> list[AllocationPoint]:
        """The points after this moment."""
        return [point for point in self._points if point.at > moment]

    def _add(self, now: float, memory: float | None, compute: float | None, stranded: float | None) -> None:
        last = self._points[-1] if self._points else None
        if last is not None and (now - last.at < EVERY_S or last[1:] == (memory, compute, stranded)):
            return
        self._points.append(AllocationPoint(now, memory, compute, stranded))
