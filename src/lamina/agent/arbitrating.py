"""The agent's loop that decides, while containers run, who gets how much of each GPU's time."""

from lamina.agent.plan import Places
from lamina.enforcement.arbitration import Arbitration
from lamina.ports.clock import Clock
from lamina.ports.files import Files

LOOK_S = 0.5
BUSY_S, IDLE_S = 0.01, 0.025
REST = 4
"""Rests at least so many times as long as deciding took, so that the agent's other work goes on."""


async def arbitrating(places: Places, files: Files, clock: Clock, *, low_priority_percent: float) -> None:
    """Decide for ever. When the agent is away, containers are held to their own shares and no gate is closed."""
    arbitration = Arbitration(low_priority_percent=low_priority_percent)
    looked = clock.monotonic() - LOOK_S
    try:
        while True:
            now = clock.monotonic()
            if now - looked >= LOOK_S:
                arbitration.attend(places.containers / name for name in files.names(places.containers))
                looked = now
            busy = arbitration.tick(int(now * 1e9))
            took = clock.monotonic() - now
            await clock.sleep(max(BUSY_S if busy else IDLE_S, REST * took))
    finally:
        arbitration.close()
