"""What NVML says of containers in virtual time: how much of the GPU's time each worked lately, in whole percents.

`Averages` is right. `Samples` is as on an H200 (docs/measurements-sharing.md): five times a second, how busy the GPU
was is given to the one process that has the GPU at that moment, and an answer is the average over the last second.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from lamina.enforcement.driver_figures import Confirmation

ASKED_NS, AVERAGED_NS, SAMPLE_NS = 500_000_000, 1_000_000_000, 200_000_000
"""How often the driver is asked, over what it averages, and how often an H200 takes a sample."""
SEED = 7


class DriverFigures(Protocol):
    """What an arbiter learns of containers, by their folders."""

    def look(self, now: int, given: Sequence[int]) -> None:
        """Each container has had so much of the GPU's time until now, in ns."""

    def confirmation(self, folder: Path, uuid: str) -> Confirmation | None: ...


Figures = Callable[[Sequence[Path]], DriverFigures]


class _Said:
    """What was said of each container last."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._said: dict[Path, Confirmation] = {}

    def _say(self, now: int, parts: Iterable[float]) -> None:
        """The part of the GPU's time of each container."""
        for folder, part in zip(self._folders, parts, strict=True):
            self._said[folder] = Confirmation(1, round(100 * part) / 100, asked_at=now)

    def confirmation(self, folder: Path, uuid: str) -> Confirmation | None:
        return self._said.get(folder)


class Averages(_Said):
    """The last second of each container."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(folders)
        self._past: deque[tuple[int, Sequence[int]]] = deque()

    def look(self, now: int, given: Sequence[int]) -> None:
        if self._past and now < self._past[-1][0] + ASKED_NS:
            return
        self._past.append((now, given))
        while len(self._past) > 1 and self._past[1][0] <= now - AVERAGED_NS:
            self._past.popleft()
        since, before = self._past[0]
        self._say(now, ((ns - then) / max(1, now - since) for ns, then in zip(given, before, strict=True)))


class Samples(_Said):
    """The same draws in each run: the probability of a container is its part of the time in which the GPU was busy."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(folders)
        self._draw = random.Random(SEED)
        self._last: tuple[int, Sequence[int]] | None = None
        self._asked = 0
        self._samples: deque[tuple[int, float]] = deque(maxlen=AVERAGED_NS // SAMPLE_NS)
        """Whose they are, and how busy the GPU was."""

    def look(self, now: int, given: Sequence[int]) -> None:
        if self._last is None:
            self._last = now, given
        since, before = self._last
        if now >= since + SAMPLE_NS:
            worked = [ns - then for ns, then in zip(given, before, strict=True)]
            owner = self._draw.choices(range(len(worked)), worked)[0] if any(worked) else 0
            self._samples.append((owner, sum(worked) / (now - since)))
            self._last = now, given
        if self._samples and now >= self._asked + ASKED_NS:
            self._asked = now
            self._say(now, map(self._average, range(len(given))))

    def _average(self, number: int) -> float:
        return sum(busy for owner, busy in self._samples if owner == number) / len(self._samples)
