"""What NVML says of containers in virtual time: how much of the GPU's time each worked lately, in whole percents.

`Averages` is right. `Samples` is as on an H200 (docs/measurements-sharing.md): five times a second, how busy the GPU
was is given to the one process that has the GPU at that moment, and an answer is the average over the last second.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lamina.enforcement.claims import Confirmation

ASKED_NS, AVERAGED_NS, SAMPLE_NS = 500_000_000, 1_000_000_000, 200_000_000
"""How often the driver is asked, over what it averages, and how often an H200 takes a sample."""
SEED = 7


class DriverFigures(Protocol):
    """What an arbiter learns of containers, by their folders."""

    def look(self, now: int, given: Sequence[int]) -> None:
        """Each container has had so much of the GPU's time until now, in ns."""

    def confirmation(self, folder: Path, uuid: str) -> Confirmation | None: ...


Figures = Callable[[Sequence[Path]], DriverFigures]


class Averages:
    """The last second of each container."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._past: deque[tuple[int, Sequence[int]]] = deque()
        self._said: dict[Path, Confirmation] = {}

    def look(self, now: int, given: Sequence[int]) -> None:
        if self._past and now < self._past[-1][0] + ASKED_NS:
            return
        self._past.append((now, given))
        while len(self._past) > 1 and self._past[1][0] <= now - AVERAGED_NS:
            self._past.popleft()
        since, before = self._past[0]
        for folder, ns, then in zip(self._folders, given, before, strict=True):
            self._said[folder] = Confirmation(1, round(100 * (ns - then) / max(1, now - since)) / 100, asked_at=now)

    def confirmation(self, folder: Path, uuid: str) -> Confirmation | None:
        return self._said.get(folder)


class Samples:
    """The same draws in each run: the probability of a container is its part of the time in which the GPU was busy."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders, self._draw = folders, random.Random(SEED)
        self._last: tuple[int, Sequence[int]] | None = None
        self._asked = 0
        self._samples: deque[tuple[int, float]] = deque(maxlen=AVERAGED_NS // SAMPLE_NS)
        """Whose they are, and how busy the GPU was."""
        self._said: dict[Path, Confirmation] = {}

    def look(self, now: int, given: Sequence[int]) -> None:
        if self._last is None:
            self._last = now, given
        since, before = self._last
        if now >= since + SAMPLE_NS:
            worked = [ns - then for ns, then in zip(given, before, strict=True)]
            if any(worked):
                (owner,) = self._draw.choices(range(len(worked)), worked)
                self._samples.append((owner, sum(worked) / (now - since)))
            else:
                self._samples.append((0, 0.0))
            self._last = now, given
        if self._samples and now >= self._asked + ASKED_NS:
            self._answer(now)

    def _answer(self, now: int) -> None:
        self._asked = now
        for number, folder in enumerate(self._folders):
            own = sum(busy for owner, busy in self._samples if owner == number) / len(self._samples)
            self._said[folder] = Confirmation(1, round(100 * own) / 100, asked_at=now)

    def confirmation(self, folder: Path, uuid: str) -> Confirmation | None:
        return self._said.get(folder)
