"""An agent's part for MPS, whose daemons the MPS service runs: everything but the socket is faked."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from lamina.mps.local_daemons import LocalDaemons
from lamina.mps.shared_memory import SharedMemory
from lamina.ports.files import Files
from lamina.ports.mounts import FakeMounts
from lamina.ports.mps import FakeMps, Home, MpsServiceDown
from tests.agent.mps import FACTS, Node

SIZE_MIB = 256
T = TypeVar("T")


class Killed(BaseException):
    """The service is gone; nothing below may catch it."""


class ServedMps(FakeMps):
    """The agent's port: a service that may be killed, over daemons and mounts that survive it."""

    def __init__(self) -> None:
        super().__init__()
        self.mounts, self.files = FakeMounts(), Files()
        self.kill: Callable[[str], None] = lambda moment: None
        """Called before and after each change that the service makes; may raise Killed."""
        self.was_killed = False
        self.serve()

    def serve(self) -> None:
        """A new service."""
        self.program = _Program(self)
        mounts = _Mortal(self.mounts, self)
        self.service = LocalDaemons(self.program, SharedMemory(mounts, self.files, SIZE_MIB))  # type: ignore[arg-type]

    async def start(self, home: Home) -> None:
        await self._ask(self.service.start(home))

    async def ask(self, home: Home, command: str) -> str:
        return await self._ask(self.service.ask(home, command))

    async def end(self, home: Home) -> None:
        await self._ask(self.service.end(home))

    async def _ask(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except Killed as error:
            self.was_killed = True
            self.kill = lambda moment: None
            self.serve()
            raise MpsServiceDown("the MPS service of this node ended before it answered") from error


class _Program:
    """NVIDIA's program, as the service has it."""

    def __init__(self, served: ServedMps) -> None:
        self._served = served

    async def start(self, home: Home) -> None:
        assert self._served.mounts.at(home.shm), "its shared memory is mounted before it starts"
        await self._do("start", FakeMps.start(self._served, home))

    async def ask(self, home: Home, command: str) -> str:
        return await self._do("ask", FakeMps.ask(self._served, home, command))

    async def end(self, home: Home) -> None:
        await self._do("end", FakeMps.end(self._served, home))

    async def _do(self, name: str, call: Awaitable[T]) -> T:
        try:
            self._served.kill(name)
        except Killed:
            getattr(call, "close", lambda: None)()
            raise
        result = await call
        self._served.kill(name)
        return result


class _Mortal:
    """Mounts, as the service has them."""

    def __init__(self, mounts: FakeMounts, served: ServedMps) -> None:
        self._mounts = mounts
        self._served = served
        self.at = mounts.at

    async def tmpfs(self, path: Path, size_mib: int) -> None:
        self._served.kill("mount")
        await self._mounts.tmpfs(path, size_mib)
        self._served.kill("mount")

    async def unmount(self, path: Path) -> None:
        self._served.kill("unmount")
        await self._mounts.unmount(path)
        self._served.kill("unmount")


class ServedNode(Node):
    """A node whose MPS daemons are run by the service."""

    mps: ServedMps

    def __init__(self, root: Path, gpus: int = 1) -> None:
        super().__init__(root, FACTS[:gpus])
        self.mps = ServedMps()


def killed_at(number: int) -> Callable[[str], None]:
    """Kills at the moment of this number."""
    left = number

    def kill(moment: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed(moment)

    return kill
