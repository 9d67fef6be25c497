"""Keys of objects to sync. A key is never processed twice at the same time and never queued twice."""

import asyncio
import heapq

from lamina.ports.clock import Clock
from lamina_lab.informer.event_timeout import wait_for_event


class WorkQueue:
    """First come, first served. A key that is added while it is processed is queued again afterwards."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[str, None] = {}
        self._in_progress: set[str] = set()
        self._again: set[str] = set()
        self._timers: list[tuple[float, str]] = []
        self._wake = asyncio.Event()

    def add(self, key: str) -> None:
        if key in self._in_progress:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._wake.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Add the key after a delay, independently of other additions."""
        if seconds <= 0:
            self.add(key)
            return
        heapq.heappush(self._timers, (self._clock.monotonic() + seconds, key))
        self._wake.set()

    async def take(self) -> str:
        """The next key. It counts as being processed until `done`."""
        while True:
            self._ring()
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._in_progress.add(key)
                if self._ready:
                    self._wake.set()
                return key
            self._wake.clear()
            left = self._timers[0][0] - self._clock.monotonic() if self._timers else None
            await wait_for_event(self._wake, self._clock, left)

    def done(self, key: str) -> None:
        self._in_progress.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _ring(self) -> None:
        while self._timers and self._timers[0][0] <= self._clock.monotonic():
            self.add(heapq.heappop(self._timers)[1])
