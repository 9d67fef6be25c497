"""Keep a loop running: what breaks is logged and started again after a pause that grows while it keeps breaking."""

import logging
from collections.abc import Awaitable, Callable

from lamina.ports.clock import Clock

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0
"""A run as long as this was a good one: the next pause is the first again."""


async def supervise(name: str, work: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Run `work` again and again, until cancelled."""
    pause = FIRST_PAUSE_S
    while True:
        started = clock.monotonic()
        try:
            await work()
            log.warning("%s ended; starting it again in %.1f s", name, pause)
        except Exception:
            log.exception("%s failed; starting it again in %.1f s", name, pause)
        if clock.monotonic() - started >= _STEADY_S:
            pause = FIRST_PAUSE_S
        await clock.sleep(pause)
        pause = min(LONGEST_PAUSE_S, pause * 2)
