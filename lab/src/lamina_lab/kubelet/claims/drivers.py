"""The drivers that are registered now: kubelet's folder plugins_registry, looked at again and again."""

import asyncio
from pathlib import Path

from lamina_lab.kubelet.claims.driver import ClaimError, Driver, introduced

LOOK_S = 0.2


class Drivers:
    """Drivers by name. A socket that appears is dialed; when it is gone or replaced, so is its driver."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_socket: dict[tuple[Path, int], Driver | None] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str) -> Driver:
        """Raises ClaimError if no driver of that name is registered."""
        for driver in self._by_socket.values():
            if driver is not None and driver.name == name:
                return driver
        raise ClaimError(f"DRA driver {name} is not registered")

    async def run(self) -> None:
        """Follow the folder until canceled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        there = {(path, path.stat().st_ino) for path in sorted(self._folder.iterdir()) if path.is_socket()}
        for key in self._by_socket.keys() - there:
            if driver := self._by_socket.pop(key):
                await driver.close()
        for key in sorted(there - self._by_socket.keys()):
            try:
                self._by_socket[key] = await introduced(key[0])
            except ClaimError as error:
                print(error, flush=True)
                self._by_socket[key] = None

    async def close(self) -> None:
        for driver in self._by_socket.values():
            if driver is not None:
                await driver.close()
