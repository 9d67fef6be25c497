"""What can be asked of MPS control daemons. Every call may raise `Outside` with a sentence that names the GPU."""

from pathlib import Path
from typing import NamedTuple, Protocol

from lamina.errors import Outside


class Hangs(Outside):
    """The control daemon is there, and did not answer in time."""


class MpsServiceDown(Outside):
    """The call could not be made, or its answer was lost: nothing is known about the daemon."""


class Home(NamedTuple):
    """Where one GPU's daemon lives; it serves that GPU alone, so that a fault does not reach clients on another one."""

    gpu: str
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / self.gpu

    @property
    def pipe(self) -> Path:
        """The pipe directory, in which clients find the daemon."""
        return self.folder / "pipe"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def shm(self) -> Path:
        """The tmpfs that the daemon and its clients have as /dev/shm."""
        return self.folder / "shm"

    @property
    def keeper(self) -> Path:
        """The note of who holds the daemon's processes. No container has it: they have `pipe` and `shm` alone."""
        return self.folder / "keeper"


class Mps(Protocol):
    """The control daemons of one node. They outlive the process that started them."""

    async def start(self, home: Home) -> None:
        """Start the daemon with shared memory of its own. Its folders exist, and no other daemon uses them."""
        ...

    async def ask(self, home: Home, command: str) -> str:
        """What the daemon prints for a command, or for several in lines. Raises Hangs when it takes too long.

        A daemon whose shared memory is not mounted does not answer.
        """
        ...

    async def end(self, home: Home) -> None:
        """End the daemon and its server, whatever they do, and remove their shared memory; none is well."""
        ...
