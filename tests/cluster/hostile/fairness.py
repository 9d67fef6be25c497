"""Whether containers get their share of compute, from what the driver says of their processes: plain data."""

from collections.abc import Mapping
from typing import NamedTuple

WARM_UP_S = 6.0
"""So long after its first work, a container is not measured yet: its program loads, and its first batches are short."""
WINDOW_S = 20.0
MAX_POINTS = 3.0


MAX_WAIT = 0.03
"""A program that waits for a core launches late, and may miss as much of its GPU's time."""


class Work(NamedTuple):
    """GPU time that a container has used since it started, in ns, how long its processes have waited for a core, and
    how many of them have a context."""

    busy_ns: int
    waited_ns: int = 0
    processes: int = 1


class _Window(NamedTuple):
    at_s: float
    work: Work


class Fairness:
    """Compares what containers get with their caps, in windows of some seconds.

    `worst` is the largest difference so far in points, and `windows` says how many were compared. A window in which a
    process came or went says nothing, because the driver forgets what a process did that has ended. Nor does one with
    less work than the cap in which the processes waited for a core for more than `MAX_WAIT` of the time.
    """

    def __init__(self, window_s: float = WINDOW_S, most_points: float = MAX_POINTS) -> None:
        self._window_s, self._most = window_s, most_points
        self._first: dict[str, float] = {}
        """When each container was first seen at work."""
        self._windows: dict[str, _Window] = {}
        self.worst, self.windows = 0.0, 0

    def look(self, now_s: float, caps: Mapping[str, int], work: Mapping[str, Work]) -> list[str]:
        """What is wrong after this look. `caps` are percents by container; one that is not in `work` is gone."""
        sentences = []
        self._windows = {name: window for name, window in self._windows.items() if name in work}
        for name, cap in caps.items():
            now = work.get(name)
            if now is None or not now.busy_ns or now_s - self._first.setdefault(name, now_s) < WARM_UP_S:
                continue
            window = self._windows.setdefault(name, _Window(now_s, now))
            broken = window.work.processes != now.processes or now.busy_ns < window.work.busy_ns
            complete = now_s - window.at_s >= self._window_s
            if complete and not broken:
                sentences += self._compare(name, cap, window, _Window(now_s, now))
            if complete or broken:
                self._windows[name] = _Window(now_s, now)
        return sentences

    def _compare(self, name: str, cap: int, before: _Window, after: _Window) -> list[str]:
        length_ns = (after.at_s - before.at_s) * 1e9
        got = 100 * (after.work.busy_ns - before.work.busy_ns) / length_ns
        if got < cap and after.work.waited_ns - before.work.waited_ns > MAX_WAIT * length_ns:
            return []
        self.windows += 1
        self.worst = max(self.worst, abs(got - cap))
        if abs(got - cap) <= self._most:
            return []
        return [f"container {name} got {got:.1f} % of its GPU's time in {after.at_s - before.at_s:.0f} s for {cap} %"]
