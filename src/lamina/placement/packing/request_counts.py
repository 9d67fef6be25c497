"""Counts of the requests that have come, in bounded memory: old ones fade."""

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

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
