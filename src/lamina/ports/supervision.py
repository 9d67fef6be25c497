"""How a program runs: until a signal asks it to end, with loops that must not end.

A loop that fails unexpectedly is set aside for a moment and starts again.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lamina.ports.clock import Clock
from lamina.ports.polling import retry
from lamina.ports.set_aside import SetAside

T = TypeVar("T")
LOOP = "loop"
"""The kind under which failures of loops are logged and counted."""
_PAUSE_S = 0.5
"""Short enough to renew the controller's Lease in time."""


async def keep_running(name: str, loop: Callable[[], Awaitable[T]], clock: Clock, set_aside: SetAside) -> T:
    """Run `loop` until it returns or is canceled, again after each unexpected error. Returns what it returns.

    A loop keeps what must outlive an error outside of itself.
    """

    def failed(error: Exception) -> None:
        set_aside.add(LOOP, name, error)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # What the loop does at its end failed, in the place of the cancellation.
            raise asyncio.CancelledError from error

    return await retry(loop, clock, every_s=_PAUSE_S, failed=failed, on=Exception)


def stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
