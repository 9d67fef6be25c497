"""The drivers that are registered now: kubelet's folder plugins_registry, looked at again and again."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from lamina_lab.kubelet.claims.driver import UNKNOWN, ClaimError, DeviceHealth, Driver, introduced

LOOK_S = 0.2


class Drivers:
    """Drivers by name. A socket that appears is dialed; when it is gone or replaced, so is its driver.

    `changed` is called when the health of a device has changed.
    """

    def __init__(self, folder: Path, changed: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._changed = changed
        self._following: dict[Driver, asyncio.Task[None]] = {}
        self._by_socket: dict[tuple[Path, int], Driver | None] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str) -> Driver:
        """Raises ClaimError if no driver of that name is registered."""
        for driver in self._by_socket.values():
            if driver is not None and driver.name == name:
                return driver
        raise ClaimError(f"DRA driver {name} is not registered")

    def health(self, name: str, pool: str, device: str) -> DeviceHealth:
        """What the driver of that name reported of a device last."""
        found = (each for each in self._by_socket.values() if each is not None and each.name == name)
        return next((each.health.get((pool, device), UNKNOWN) for each in found), UNKNOWN)

    async def run(self) -> None:
        """Follow the folder until canceled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        there = {(path, path.stat().st_ino) for path in sorted(self._folder.iterdir()) if path.is_socket()}
        for key in self._by_socket.keys() - there:
            if driver := self._by_socket.pop(key):
                await self._end(driver)
        for key in sorted(there - self._by_socket.keys()):
            try:
                self._by_socket[key] = driver = await introduced(key[0])
                self._following[driver] = asyncio.create_task(driver.follow_health(self._changed))
            except ClaimError as error:
                print(error, flush=True)
                self._by_socket[key] = None

    async def close(self) -> None:
        for driver in self._by_socket.values():
            if driver is not None:
                await self._end(driver)

    async def _end(self, driver: Driver) -> None:
        following = self._following.pop(driver)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await driver.close()
