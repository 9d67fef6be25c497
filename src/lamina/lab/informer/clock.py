"""Time as the lab's loops see it: two readings and a way to wait, so that tests can pass their own."""

import asyncio
import time
from typing import Any, Protocol


class Clock(Protocol):
    """`now` dates things for people, `monotonic` measures how long; both are in seconds."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def woken(event: asyncio.Event, clock: Clock, seconds: float | None) -> None:
    """Return when `event` is set, or after `seconds`; None waits for the event alone."""
    if event.is_set() or (seconds is not None and seconds <= 0):
        return
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait())]
    if seconds is not None:
        waits.append(asyncio.ensure_future(clock.sleep(seconds)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
