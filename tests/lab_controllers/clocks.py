"""A clock that stands still until it is told to move."""

import asyncio


class FakeClock:
    """Time as a test has it: `advance` moves both readings and wakes whoever waited for that long."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def wall(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        wake = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed + seconds, wake))
        await wake

    async def advance(self, seconds: float, *, step: float = 1.0) -> None:
        """Let time pass in steps, with everything that becomes due happening in between."""
        left = seconds
        while left > 0:
            part = min(step, left)
            left -= part
            self._elapsed += part
            due = [each for each in self._sleepers if each[0] <= self._elapsed]
            self._sleepers = [each for each in self._sleepers if each[0] > self._elapsed and not each[1].done()]
            for _, wake in due:
                if not wake.done():
                    wake.set_result(None)
            await settle()


async def settle(turns: int = 200) -> None:
    """Let everything that is ready run until it waits again."""
    for _ in range(turns):
        await asyncio.sleep(0)
