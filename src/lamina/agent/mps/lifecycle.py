"""Starts and stops one MPS daemon. The agent may die after each step, and each step can be repeated.

Start: the journal, the directories, the GPU's compute mode, the program, its limits, and reading the limits back,
because a daemon may accept them silently and ignore them. In exclusive mode only the daemon's server can use the GPU,
so no process avoids the limits by removing the pipe directory from its environment.

Stop: the daemon, the compute mode, the directories, and the journal last. A daemon outlives its agent, and the next
agent finds it in the journal with the limits that it should have. At uninstall every daemon there is ended: one that
ran in the agent's container is gone already, but the compute mode of its GPU stays until it is set again.
"""

import logging
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from lamina.agent.mps.clients import GET_MEMORY, GET_THREADS, ClientLimits, parse_limits
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mps import Home, Mps
from lamina.ports.nvml import Nvml
from lamina.ports.polling import RetryPauses


class JournaledDaemon(Struct, frozen=True, kw_only=True):
    """One daemon: the MPS directory that it was started in, and its limits. `for_grants`: its clients have grants."""

    root: str
    limits: ClientLimits
    for_grants: bool = False


class DaemonJournal:
    """The daemons of one node, by GPU."""

    def __init__(self, path: Path, files: Files) -> None:
        """Read the journal if it exists. Raises Outside if it cannot be read."""
        self._path = path
        self._files = files
        try:
            self._daemons = msgspec.json.decode(files.read(path) or b"{}", type=dict[str, JournaledDaemon])
        except msgspec.DecodeError as error:
            raise Outside(
                f"cannot read the list of MPS daemons {path}: {error}; end the daemons, set the compute mode of their "
                "GPUs to default, and move the file away"
            ) from error

    def get(self, gpu: str) -> JournaledDaemon | None:
        return self._daemons.get(gpu)

    @property
    def gpus(self) -> frozenset[str]:
        return frozenset(self._daemons)

    def put(self, gpu: str, daemon: JournaledDaemon) -> None:
        """Raises Outside."""
        if self._daemons.get(gpu) != daemon:
            self._write({**self._daemons, gpu: daemon})

    def drop(self, gpu: str) -> None:
        """Raises Outside."""
        self._write({uuid: daemon for uuid, daemon in self._daemons.items() if uuid != gpu})

    def _write(self, daemons: dict[str, JournaledDaemon]) -> None:
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(daemons, order="sorted"), indent=1))
        self._daemons = daemons


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


PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_S = 60.0
"""A daemon that ran this long did not fail at its start, so the next pause is the first one again."""


class RestartBackoff:
    """For one daemon. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._pauses = RetryPauses(PAUSES_S)
        self._not_before = float("-inf")
        self._running_since: float | None = None
        self.timeouts = 0
        """How many requests in a row the daemon did not answer in time."""

    def may_start(self, now: float) -> bool:
        return now >= self._not_before

    def record_start(self, now: float) -> None:
        """The daemon is started now; the next start waits for its pause."""
        self._not_before = now + self._pauses.failed()
        self._running_since = None
        self.timeouts = 0

    def record_success(self, now: float) -> None:
        """The daemon answers and has its limits."""
        self.timeouts = 0
        if self._running_since is None:
            self._running_since = now
        elif now - self._running_since >= STEADY_S:
            self._pauses.succeeded()
            self._not_before = float("-inf")


async def end_daemons(path: Path, mps: Mps, nvml: Nvml, files: Files) -> list[str]:
    """End the daemons in the journal at `path`. Returns a sentence for each GPU that could not be restored."""
    try:
        journal = DaemonJournal(path, files)
    except Outside as error:
        return [str(error)]
    lifecycle, failures = DaemonLifecycle(mps, nvml, journal, files), []
    for gpu in sorted(journal.gpus):
        daemon = journal.get(gpu)
        assert daemon is not None
        try:
            await lifecycle.stop(Home(gpu, Path(daemon.root)), present=True)
        except Outside as error:
            failures.append(
                f"{gpu} may still have the compute mode EXCLUSIVE_PROCESS, which was set for MPS: {error}; "
                f"reset it with nvidia-smi -i {gpu} -c DEFAULT"
            )
    return failures
