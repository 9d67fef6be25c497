"""Wait for an event with a timeout measured by a clock."""

import asyncio
import contextlib

from lamina.ports.clock import Clock, within


async def wait_for_event(event: asyncio.Event, clock: Clock, seconds: float | None) -> None:
    """Return when `event` is set or after `seconds`; None means no timeout."""
    if seconds is None:
        await event.wait()
    elif seconds > 0 and not event.is_set():
        with contextlib.suppress(TimeoutError):
            await within(clock, seconds, event.wait())
