"""One daemon brought up or taken down. Each step may be the last one of this agent, and each can be repeated.

Up: the record, the folders, the GPU's compute mode, the program, its limits, and the limits read back, since a daemon
that took them without a word may have ignored them. Exclusive mode lets nobody on the GPU but the daemon's server, so
that no process gets around the limits by leaving the pipe directory out of its environment.

Down: the daemon, its compute mode, its folders, and the record last.
"""

import logging
from pathlib import Path

from lamina.agent.mps.kept import Kept, Made
from lamina.agent.mps.limits import GET_MEMORY, GET_THREADS, Limits, told
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mps import Home, Mps
from lamina.ports.nvml import Nvml

log = logging.getLogger(__name__)


class Steps:
    """The steps of one node's daemons. Every one raises Outside."""

    def __init__(self, mps: Mps, nvml: Nvml, kept: Kept, files: Files, shm: Path | None = None) -> None:
        """`shm` is a folder that clients have as /dev/shm, unless it is the node's own."""
        self._mps = mps
        self._nvml = nvml
        self._kept = kept
        self._files = files
        self._shm = shm

    async def clear(self, home: Home) -> None:
        """End what is left of a daemon that does not answer: a server may outlive it and keep the GPU."""
        await self._mps.end(home)
        self._files.remove_tree(home.pipe)

    async def up(self, home: Home, limits: Limits) -> None:
        """Bring a daemon up after `clear`, on a GPU that nobody uses."""
        self._kept.put(home.gpu, Made(root=str(home.root), limits=limits))
        self._files.make_folder(home.pipe)
        self._files.make_folder(home.log)
        if self._shm is not None:
            self._files.share_folder(self._shm)
        await self._nvml.set_exclusive(home.gpu, True)
        await self._mps.start(home)
        await self.configure(home, limits)
        log.info("MPS runs on %s: %s for each client", home.gpu, limits)

    async def configure(self, home: Home, limits: Limits) -> None:
        """Tell the daemon its limits, and see that it has them."""
        for command in limits.commands():
            await self._mps.ask(home, command)
        found = await self.limits_of(home)
        if found != limits:
            raise Outside(f"the MPS control daemon of {home.gpu} was told {limits} for each client, and says {found}")

    async def limits_of(self, home: Home) -> Limits | None:
        """The limits of a daemon that answers; None where it answers nonsense."""
        lines = (await self._mps.ask(home, f"{GET_THREADS}\n{GET_MEMORY}")).splitlines()
        return told(*lines) if len(lines) == 2 else None

    async def down(self, home: Home, *, present: bool) -> None:
        """Take the daemon down; nobody uses it. A GPU that is not `present` has no mode to set."""
        try:
            await self._mps.ask(home, "quit")
        except Outside as error:
            log.info("The MPS control daemon of %s is ended, for it does not quit: %s", home.gpu, error)
        await self._mps.end(home)
        if present:
            await self._nvml.set_exclusive(home.gpu, False)
        self._files.remove_tree(home.folder)
        self._kept.drop(home.gpu)
        log.info("MPS has ended on %s", home.gpu)
