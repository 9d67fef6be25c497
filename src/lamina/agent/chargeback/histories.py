"""What the containers of each workload used of GPUs in the last one to two weeks: peaks and percentiles. Pure.

A history has two windows. The present one ends after `WINDOW_S` and then takes the place of the one before it. Parts of
time are counted in buckets of equal width, so a history has a fixed size, and there are at most `MAX_HISTORIES`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

BUCKETS = 20
WINDOW_S = 7 * 86400.0
MAX_HISTORIES = 256
MAX_PASSED_S = 60.0
"""Time between two observations counts up to this."""


class HistoryKey(NamedTuple):
    """A container of a workload, in all pods of it."""

    namespace: str
    kind: str
    workload: str
    container: str


class MomentaryUse(NamedTuple):
    """What a container uses at one moment. None is what is not known."""

    key: HistoryKey
    memory_bytes: int | None
    busy_percent: float | None


class Window(Struct, frozen=True, array_like=True):
    """`busy_s` are the seconds in which containers used up to 5, 10, ... 100 percent of a GPU's time."""

    began_at: float
    memory_peak: int | None = None
    """None where no use of memory was known."""
    busy_s: tuple[float, ...] = (0.0,) * BUCKETS

    def with_use(self, use: MomentaryUse, passed: float) -> "Window":
        busy = list(self.busy_s)
        if use.busy_percent is not None:
            percent = min(max(use.busy_percent, 0.0), 100.0)
            busy[max(0, -int(-percent * BUCKETS // 100) - 1)] += passed
        return Window(self.began_at, _larger(self.memory_peak, use.memory_bytes), tuple(busy))


def _larger(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


class ContainerHistory(Struct, frozen=True, array_like=True):
    """`seen_at` is when a container of it was seen last, in seconds since 1970; so are beginnings of windows."""

    key: HistoryKey
    present: Window
    before: Window | None
    seen_at: float

    @property
    def memory_peak(self) -> int | None:
        """The most memory in bytes that one container had on a GPU; None where it is not known."""
        return _larger(self.present.memory_peak, self.before.memory_peak if self.before else None)

    @property
    def observed_s(self) -> float:
        """The time for which the use of compute is known, of all containers together."""
        return sum(self._busy_s)

    def compute_percent(self, part: float) -> float | None:
        """What containers stayed below for this part of the time; None where it is not known."""
        sought, seen = part * self.observed_s, 0.0
        for place, seconds in enumerate(self._busy_s):
            seen += seconds
            if seconds and seen >= sought:
                return 100 * (place + 1) / BUCKETS
        return None

    @property
    def _busy_s(self) -> list[float]:
        before = self.before.busy_s if self.before else (0.0,) * BUCKETS
        return [new + old for new, old in zip(self.present.busy_s, before, strict=True)]


class Histories:
    """The histories of one node."""

    def __init__(self, kept: Iterable[ContainerHistory] = (), *, most: int = MAX_HISTORIES) -> None:
        self._kept = {history.key: history for history in kept}
        self._most = most

    @property
    def state(self) -> tuple[ContainerHistory, ...]:
        return tuple(self._kept.values())

    def observe(self, uses: Sequence[MomentaryUse], *, passed_s: float, now: float) -> None:
        """What containers used in the last `passed_s` seconds; `now` is since 1970."""
        passed = min(max(passed_s, 0.0), MAX_PASSED_S)
        self._kept = {
            key: turned for key, history in self._kept.items() if (turned := _turned(history, now)) is not None
        }
        for use in uses:
            history = self._kept.get(use.key) or self._opened(use.key, now)
            if history is not None:
                present = history.present.with_use(use, passed)
                self._kept[use.key] = msgspec.structs.replace(history, present=present, seen_at=now)

    def _opened(self, key: HistoryKey, now: float) -> ContainerHistory | None:
        """A new history in the place of one that was not seen for longest; None if all are in use."""
        if len(self._kept) >= self._most:
            oldest = min(self._kept.values(), key=lambda history: history.seen_at)
            if oldest.seen_at >= now:
                return None
            del self._kept[oldest.key]
        return ContainerHistory(key, Window(now), None, now)


def _turned(history: ContainerHistory, now: float) -> ContainerHistory | None:
    """The history in the windows of this moment; None if no container was seen in either. A window that begins in the
    future, because the clock went back, ends too."""
    if 0 <= now - history.present.began_at < WINDOW_S:
        return history
    if now - history.seen_at >= WINDOW_S:
        return None
    return ContainerHistory(history.key, Window(now), history.present, min(history.seen_at, now))
