"""Clocks that a test moves. They differ in what happens between two moments."""

import asyncio
import heapq

from lamina.ports.clock import FakeClock


class SettableClock(FakeClock):
    """`time` is the monotonic reading and may be set; the wall clock shows `wall_time`, or the same time without it."""

    def __init__(self, time: float = 1000.0, wall_time: float | None = None) -> None:
        super().__init__(time)
        self.wall_time = wall_time

    @property
    def time(self) -> float:
        return self._now

    @time.setter
    def time(self, now: float) -> None:
        self._now = now

    def wall(self) -> float:
        return self._now if self.wall_time is None else self.wall_time


class JumpingClock(FakeClock):
    """A sleep ends at once, and it is later."""

    async def sleep(self, seconds: float) -> None:
        self._now += seconds


class WrongClock(JumpingClock):
    """Its wall clock is `wrong_by` seconds ahead of the time that passes, and may be set."""

    wrong_by = 0.0

    def wall(self) -> float:
        return super().wall() + self.wrong_by


class SteppedClock(FakeClock):
    """Time passes in steps, and everything that becomes due happens in between."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        super().__init__(start)

    async def advance(self, seconds: float, *, step: float = 1.0) -> None:
        """Let time pass, at most `step` seconds at once."""
        while seconds > 0:
            await super().advance(min(step, seconds))
            await settle()
            seconds -= step


class TogetherClock(FakeClock):
    """At each moment everybody does all that there is to do, and those of one moment wake together."""

    async def advance(self, seconds: float) -> None:
        end = self._now + seconds
        await all_done()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now = max(self._now, self._sleepers[0][0])
            while self._sleepers and self._sleepers[0][0] <= self._now:
                future = heapq.heappop(self._sleepers)[-1]
                if not future.done():
                    future.set_result(None)
            await all_done()
        self._now = end


async def settle(turns: int = 200) -> None:
    """Let everything that is ready run until it waits again."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def all_done() -> None:
    """Wait until every task waits for something."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    while ready:  # noqa: ASYNC110
        await asyncio.sleep(0)
