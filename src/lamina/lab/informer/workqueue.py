"""Keys of objects that want to be looked at. A key is never in two hands at once, and never in the queue twice."""

import asyncio
import heapq

from lamina.lab.informer.woken import woken
from lamina.ports.clock import Clock


class WorkQueue:
    """First come, first served; a key added while it is in somebody's hands comes again afterwards."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[str, None] = {}
        self._in_hand: set[str] = set()
        self._again: set[str] = set()
        self._timers: list[tuple[float, str]] = []
        self._wake = asyncio.Event()

    def add(self, key: str) -> None:
        if key in self._in_hand:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._wake.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Add the key after a while, whatever else is added for it before."""
        if seconds <= 0:
            self.add(key)
            return
        heapq.heappush(self._timers, (self._clock.monotonic() + seconds, key))
        self._wake.set()

    async def take(self) -> str:
        """The next key, which is in the caller's hands until `done`."""
        while True:
            self._ring()
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._in_hand.add(key)
                if self._ready:
                    self._wake.set()
                return key
            self._wake.clear()
            left = self._timers[0][0] - self._clock.monotonic() if self._timers else None
            await woken(self._wake, self._clock, left)

    def done(self, key: str) -> None:
        self._in_hand.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _ring(self) -> None:
        while self._timers and self._timers[0][0] <= self._clock.monotonic():
            self.add(heapq.heappop(self._timers)[1])
