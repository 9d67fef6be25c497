"""Starts and stops one MPS daemon. The agent may die after each step, and each step can be repeated.

Start: the journal, the directories, the GPU's compute mode, the program, its limits, and reading the limits back,
because a daemon may accept them silently and ignore them. In exclusive mode only the daemon's server can use the GPU,
so no process avoids the limits by removing the pipe directory from its environment.

Stop: the daemon, the compute mode, the directories, and the journal last.
"""

import logging
from typing import Protocol

from lamina.agent.mps.client_limits import GET_MEMORY, GET_THREADS, ClientLimits, parse_limits
from lamina.agent.mps.journal import JournaledDaemon
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mps import Home, Mps
from lamina.ports.nvml import Nvml

log = logging.getLogger(__name__)


class Journal(Protocol):
    """What remembers the daemons that were started."""

    def put(self, gpu: str, daemon: JournaledDaemon) -> None: ...

    def drop(self, gpu: str) -> None: ...


class DaemonLifecycle:
    """The steps for the daemons of one node. Every call raises Outside."""

    def __init__(self, mps: Mps, nvml: Nvml, journal: Journal, files: Files) -> None:
        self._mps = mps
        self._nvml = nvml
        self._journal = journal
        self._files = files

    async def clear(self, home: Home) -> None:
        """End the remains of a daemon that does not answer: a server may outlive it and keep the GPU."""
        await self._mps.end(home)
        self._files.remove_tree(home.pipe)

    async def start(
        self, home: Home, limits: ClientLimits, *, exclusive: bool = True, for_grants: bool = False
    ) -> None:
        """Start a daemon after `clear`, on a GPU that is not in use if it is to be `exclusive` to the daemon."""
        self._journal.put(home.gpu, JournaledDaemon(root=str(home.root), limits=limits, for_grants=for_grants))
        self._files.make_folder(home.pipe)
        self._files.make_folder(home.log)
        if exclusive:
            await self._nvml.set_exclusive(home.gpu, True)
        await self._mps.start(home)
        await self.configure(home, limits)
        log.info("Started MPS on %s: %s for each client", home.gpu, limits)

    async def configure(self, home: Home, limits: ClientLimits) -> None:
        """Set the daemon's limits, and check that it has them."""
        for command in limits.commands():
            await self._mps.ask(home, command)
        actual = await self.limits_of(home)
        if actual != limits:
            raise Outside(f"the MPS daemon of {home.gpu} did not accept {limits} for each client; it has {actual}")

    async def limits_of(self, home: Home) -> ClientLimits | None:
        """The limits of a daemon that answers; None if its answer cannot be parsed."""
        lines = (await self._mps.ask(home, f"{GET_THREADS}\n{GET_MEMORY}")).splitlines()
        return parse_limits(*lines) if len(lines) == 2 else None

    async def stop(self, home: Home, *, present: bool) -> None:
        """Stop a daemon without clients. A GPU that is not `present`, or not exclusive, has no compute mode to
        restore."""
        try:
            await self._mps.ask(home, "quit")
        except Outside as error:
            log.info("Ending the MPS daemon of %s by force, because it does not quit: %s", home.gpu, error)
        await self._mps.end(home)
        if present:
            await self._nvml.set_exclusive(home.gpu, False)
        self._files.remove_tree(home.folder)
        self._journal.drop(home.gpu)
        log.info("Stopped MPS on %s", home.gpu)
