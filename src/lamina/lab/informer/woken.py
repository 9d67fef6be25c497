"""Wait for something to happen, but no longer than some time of a clock."""

import asyncio
from typing import Any

from lamina.ports.clock import Clock


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
