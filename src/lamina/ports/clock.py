"""The port to time, so that code that waits or compares times can be tested without waiting."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """All times are in seconds."""

    def monotonic(self) -> float:
        """For durations; never goes back."""
        ...

    def wall(self) -> float:
        """Since the epoch, for people and records."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float, awaited: Awaitable[T]) -> T:
    """What `awaited` returns. After `seconds` of the clock it is canceled, and TimeoutError is raised."""
    work = asyncio.ensure_future(awaited)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((work, timer), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise TimeoutError
        return work.result()
    finally:
        work.cancel()
        timer.cancel()


class FakeClock:
    """A clock that stands still until `advance` moves it; tasks that sleep wake in the order of their times."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds`, letting each sleeper run at its own moment."""
        end = self._now + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            moment, _, future = heapq.heappop(self._sleepers)
            self._now = max(self._now, moment)
            if not future.done():
                future.set_result(None)
            await self._settle()
        self._now = end

    async def _settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
