"""Starts, asks and stops one MPS daemon, of a GPU or of a request of a ResourceClaim.

The agent may die after each step, and each step can be repeated.

One that has ended is started again after a growing pause, on a GPU where nothing is in the way. One that may run, and
have clients, because it does not answer in time or cannot be asked, is left.

Start: the journal, the directories, the GPU's compute mode, the program, its limits, and reading the limits back,
because a daemon may accept them silently and ignore them. In exclusive mode only the daemon's server can use the GPU,
so no process avoids the limits by removing the pipe directory from its environment.

Stop: the daemon, the compute mode, the directories, and the journal last. A daemon outlives its agent, and the next
agent finds it in the journal with the limits that it should have. At uninstall every daemon there is ended: one that
ran in the agent's container is gone already, but the compute mode of its GPU stays until it is set again.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.mps.clients import GET_MEMORY, GET_THREADS, ClientLimits, parse_limits
from lamina.errors import NotYet, Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.mps import Hangs, Home, Mps, MpsServiceDown
from lamina.ports.nvml import Nvml
from lamina.ports.polling import RetryPauses

log = logging.getLogger(__name__)

MAX_TIMEOUTS = 3
"""A daemon that does not answer as many requests in a row is restarted."""


class JournaledDaemon(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The daemon of a GPU or MIG device: the MPS directory that it was started in, and its limits.

    `exclusive`: only its clients may use the GPU. `for_grants`: these have grants. `request` is the CDI name of the
    request of a claim that it serves; a GPU has as many of these as claims share it by MPS, each in a directory of its
    own.
    """

    gpu: str
    root: str
    limits: ClientLimits
    exclusive: bool = True
    for_grants: bool = False
    request: str = ""

    @property
    def key(self) -> str:
        return self.request or self.gpu

    @property
    def home(self) -> Home:
        return Home(self.gpu, Path(self.root))


class DaemonJournal:
    """The daemons of a node that were started: written before anything is made, and dropped when all of it is gone."""

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

    def get(self, key: str) -> JournaledDaemon | None:
        return self._daemons.get(key)

    @property
    def daemons(self) -> tuple[JournaledDaemon, ...]:
        return tuple(self._daemons.values())

    @property
    def gpus(self) -> frozenset[str]:
        """The GPUs with a daemon that serves no claim."""
        return frozenset(each.gpu for each in self.daemons if not each.request)

    def put(self, daemon: JournaledDaemon) -> None:
        """Raises Outside."""
        if self._daemons.get(daemon.key) != daemon:
            self._write({**self._daemons, daemon.key: daemon})

    def drop(self, key: str) -> None:
        """Raises Outside."""
        self._write({other: daemon for other, daemon in self._daemons.items() if other != key})

    def _write(self, daemons: dict[str, JournaledDaemon]) -> None:
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(daemons, order="sorted"), indent=1))
        self._daemons = daemons


LOGS = ("control.log", "server.log")
"""What NVIDIA's programs write into their log directory."""
MAX_LOG_BYTES = 1 << 20
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

    def end_pause(self) -> None:
        """A container waits for the daemon."""
        self._not_before = float("-inf")

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


class Ensured(Enum):
    """What came of a daemon that is to run. One that `PAUSES` has ended, and is not started again yet."""

    RUNS = auto()
    STARTED = auto()
    PAUSES = auto()


Hindrance = Callable[[Sequence[str]], str]
"""What is in the way of a daemon, with the PIDs of the processes on its GPU; empty if nothing is."""


class DaemonLifecycle:
    """The steps for the daemons of one node. Every call raises Outside."""

    def __init__(self, mps: Mps, nvml: Nvml, journal: DaemonJournal, files: Files, clock: Clock) -> None:
        self.journal = journal
        self.backoffs: defaultdict[str, RestartBackoff] = defaultdict(RestartBackoff)
        self._mps = mps
        self._nvml = nvml
        self._files = files
        self._clock = clock

    async def ensure(
        self, daemon: JournaledDaemon, hindrance: Hindrance, reserve: Callable[[], None] = lambda: None
    ) -> Ensured:
        """Have the daemon run. `reserve` is called once it may start: from there on no one else may get the GPU.

        Raises NotYet with what is in the way, and MpsServiceDown and Hangs where it may run.
        """
        if self.journal.get(daemon.key) == daemon and await self._is_running(daemon):
            self._keep_logs_short(daemon.home)
            return Ensured.RUNS
        backoff, now = self.backoffs[daemon.key], self._clock.monotonic()
        _require(hindrance(()))
        if not backoff.may_start(now):
            return Ensured.PAUSES
        await self._clear(daemon.home)
        processes = await self._nvml.processes(daemon.gpu) if daemon.exclusive else ()
        _require(hindrance([str(process.pid) for process in processes]))  # again, because the calls above took time
        reserve()
        backoff.record_start(now)
        await self._start(daemon)
        backoff.record_success(now)
        return Ensured.STARTED

    def _keep_logs_short(self, home: Home) -> None:
        """A daemon logs each question whether it runs, in a directory that is often in the node's memory."""
        for name in LOGS:
            try:
                self._files.keep_short(home.log / name, MAX_LOG_BYTES)
            except Outside as error:
                log.warning("%s", error)  # the daemon still serves its clients

    async def _is_running(self, daemon: JournaledDaemon) -> bool:
        """Whether a daemon that was started runs; then it has its limits. Raises MpsServiceDown and Hangs where it may
        run, and have clients."""
        backoff = self.backoffs[daemon.key]
        try:
            limits = await self.limits_of(daemon.home)
        except MpsServiceDown:
            raise
        except Hangs:
            backoff.timeouts += 1
            if backoff.timeouts < MAX_TIMEOUTS:
                raise
            return False
        except Outside as error:
            log.debug("%s", error)
            return False
        if limits != daemon.limits:
            await self._configure(daemon)
        if daemon.exclusive:
            await self._nvml.set_exclusive(daemon.gpu, True)
        backoff.record_success(self._clock.monotonic())
        return True

    async def _clear(self, home: Home) -> None:
        """End the remains of a daemon that does not answer: a server may outlive it and keep the GPU."""
        await self._mps.end(home)
        self._files.remove_tree(home.pipe)

    async def _start(self, daemon: JournaledDaemon) -> None:
        """Start a daemon after `_clear`, on a GPU that is not in use if it is to be exclusive to the daemon."""
        self.journal.put(daemon)
        home = daemon.home
        self._files.make_folder(home.pipe)
        self._files.make_folder(home.log)
        if daemon.exclusive:
            await self._nvml.set_exclusive(home.gpu, True)
        await self._mps.start(home)
        await self._configure(daemon)
        log.info("Started MPS on %s: %s for each client", home.gpu, daemon.limits)

    async def _configure(self, daemon: JournaledDaemon) -> None:
        """Set the daemon's limits, and check that it has them."""
        for command in daemon.limits.commands():
            await self._mps.ask(daemon.home, command)
        actual = await self.limits_of(daemon.home)
        if actual != daemon.limits:
            raise Outside(
                f"the MPS daemon of {daemon.gpu} did not accept {daemon.limits} for each client; it has {actual}"
            )

    async def limits_of(self, home: Home) -> ClientLimits | None:
        """The limits of a daemon that answers; None if its answer cannot be parsed."""
        lines = (await self._mps.ask(home, f"{GET_THREADS}\n{GET_MEMORY}")).splitlines()
        return parse_limits(*lines) if len(lines) == 2 else None

    async def stop(self, daemon: JournaledDaemon, *, present: bool) -> None:
        """Stop a daemon without clients. The compute mode of a GPU is restored if that is `present`."""
        home = daemon.home
        try:
            await self._mps.ask(home, "quit")
        except Outside as error:
            log.info("Ending the MPS daemon of %s by force, because it does not quit: %s", home.gpu, error)
        await self._mps.end(home)
        if present and daemon.exclusive:
            await self._nvml.set_exclusive(home.gpu, False)
        self._files.remove_tree(home.root if daemon.request else home.folder)
        self.journal.drop(daemon.key)
        self.backoffs.pop(daemon.key, None)
        log.info("Stopped MPS on %s", home.gpu)


def _require(in_the_way: str) -> None:
    if in_the_way:
        raise NotYet(in_the_way)


async def end_daemons(path: Path, mps: Mps, nvml: Nvml, files: Files, clock: Clock) -> list[str]:
    """End the daemons in the journal at `path`. Returns a sentence for each GPU that could not be restored."""
    try:
        journal = DaemonJournal(path, files)
    except Outside as error:
        return [str(error)]
    lifecycle, failures = DaemonLifecycle(mps, nvml, journal, files, clock), []
    for daemon in journal.daemons:
        try:
            await lifecycle.stop(daemon, present=True)
        except Outside as error:
            left = f"{daemon.gpu} may still have an MPS daemon: {error}"
            if daemon.exclusive:
                left = (
                    f"{daemon.gpu} may still have the compute mode EXCLUSIVE_PROCESS, which was set for MPS: {error}; "
                    f"reset it with nvidia-smi -i {daemon.gpu} -c DEFAULT"
                )
            failures.append(left)
    return failures
