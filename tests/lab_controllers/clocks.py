"""A clock for tests that stands still until it is advanced, step by step."""

import asyncio

from lamina.ports import clock


class FakeClock(clock.FakeClock):
    """Time passes in steps, and everything that becomes due happens in between."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        super().__init__(start)

    async def advance(self, seconds: float, *, step: float = 1.0) -> None:
        """Let time pass, at most `step` seconds at once."""
        while seconds > 0:
            await super().advance(min(step, seconds))
            await settle()
            seconds -= step


async def settle(turns: int = 200) -> None:
    """Let everything that is ready run until it waits again."""
    for _ in range(turns):
        await asyncio.sleep(0)
