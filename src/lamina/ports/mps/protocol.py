"""What can be asked of MPS control daemons. Every call may raise `Outside` with a sentence that names the GPU."""

from pathlib import Path
from typing import NamedTuple, Protocol

from lamina.errors import Outside


class Hangs(Outside):
    """The control daemon is there, and did not answer in time."""


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


class Mps(Protocol):
    """The control daemons of one node. They outlive the process that started them."""

    async def start(self, home: Home) -> None:
        """Start the daemon. Its folders exist, and no other daemon uses them."""
        ...

    async def ask(self, home: Home, command: str) -> str:
        """What the daemon prints for a command, or for several in lines. Raises Hangs when it takes too long."""
        ...

    async def end(self, home: Home) -> None:
        """End the daemon and its server, whatever they do; none is well."""
        ...
