"""An agent's part for MPS, whose daemons the MPS service runs: everything but the socket is faked."""

from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from lamina.mps.local_daemons import LocalDaemons, SharedMemory
from lamina.ports.files import Files
from lamina.ports.mounts import FakeMounts
from lamina.ports.mps import FakeMps, Home, MpsServiceDown
from tests.agent.mps import FACTS, MpsNode
from tests.worlds.deaths import Died, Life, mortal

SIZE_MIB = 256
T = TypeVar("T")


class ServedMps(FakeMps):
    """The agent's port: a service that may be killed, over daemons and mounts that survive it."""

    def __init__(self) -> None:
        super().__init__()
        self.mounts, self.files = FakeMounts(), Files()
        self.was_killed = False
        self.serve()

    def serve(self) -> None:
        """A new service."""
        self.life = Life()
        program, mounts = (mortal(port, self.life) for port in (_Program(self), self.mounts))
        self.service = LocalDaemons(program, SharedMemory(mounts, self.files, SIZE_MIB))  # type: ignore[arg-type]

    async def start(self, home: Home) -> None:
        await self._ask(self.service.start(home))

    async def ask(self, home: Home, command: str) -> str:
        return await self._ask(self.service.ask(home, command))

    async def end(self, home: Home) -> None:
        await self._ask(self.service.end(home))

    async def _ask(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except Died as error:
            self.was_killed = True
            self.serve()
            raise MpsServiceDown("the MPS service of this node ended before it answered") from error


class _Program:
    """NVIDIA's program, as the service has it."""

    def __init__(self, served: ServedMps) -> None:
        self._served = served

    async def start(self, home: Home) -> None:
        assert self._served.mounts.at(home.shm), "its shared memory is mounted before it starts"
        await FakeMps.start(self._served, home)

    async def ask(self, home: Home, command: str) -> str:
        return await FakeMps.ask(self._served, home, command)

    async def end(self, home: Home) -> None:
        await FakeMps.end(self._served, home)


class ServedNode(MpsNode):
    """A node whose MPS daemons are run by the service."""

    mps: ServedMps

    def __init__(self, root: Path, gpus: int = 1) -> None:
        super().__init__(root, FACTS[:gpus])
        self.mps = ServedMps()
