"""Keep a loop running: log failures and restart the loop after a pause that grows while it keeps failing."""

import logging
from collections.abc import Awaitable, Callable

from lamina.ports.clock import Clock

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 30.0
_STEADY_S = 60.0
"""After a run of this length, the next pause is the first one again."""


async def supervise(name: str, work: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Run `work` again and again until canceled."""
    pause = FIRST_PAUSE_S
    while True:
        started = clock.monotonic()
        try:
            await work()
            log.warning("%s ended; restarting it in %.1f s", name, pause)
        except Exception:
            log.exception("%s failed; restarting it in %.1f s", name, pause)
        if clock.monotonic() - started >= _STEADY_S:
            pause = FIRST_PAUSE_S
        await clock.sleep(pause)
        pause = min(MAX_PAUSE_S, pause * 2)
