"""Admission in a process of its own, so that no request can delay the scheduler, the Lease or the watches.

The controller binds the port and starts the process, which inherits the socket: while the process is started again,
the API server's connections wait. One that has ended, or answers no pings, is replaced.
"""

import asyncio
import contextlib
import logging
import os
import pickle
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lamina.controller.admission.certificate_store import CertificateStore
from lamina.controller.admission.channel import Channel, open_channel
from lamina.controller.admission.messages import (
    Asked,
    Certified,
    Configured,
    Decided,
    Finish,
    FromProcess,
    Ping,
    Pong,
    Reviewed,
)
from lamina.controller.admission.review import Demand
from lamina.controller.configuration import LiveConfiguration
from lamina.controller.metrics import Metrics
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.polling import FailureLog

log = logging.getLogger(__name__)

_PACKAGE = "lamina.controller.admission"
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Otherwise glibc keeps the memory of large bodies when they have been answered."""
PING_S = 5.0
"""Between two pings, each of which has to be answered before the next one."""
MOST_MISSED = 3
"""Pings in a row without an answer. A pause of this process itself looks like one."""
MOST_MISSED_AT_START = 24
"""Before the first answer, as a busy machine starts processes slowly."""
_END_S = 5.0


@dataclass(frozen=True)
class AdmissionChild:
    """A started process, and the channel to it."""

    process: asyncio.subprocess.Process
    channel: Channel[FromProcess]

    async def end(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        self.channel.close()


async def start_child(listener: socket.socket) -> AdmissionChild:
    """Start a process that serves on `listener`. Raises Outside."""
    ours, theirs = socket.socketpair()
    level = logging.getLogger().getEffectiveLevel()
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _PACKAGE, str(listener.fileno()), str(level)),
                stdin=theirs.fileno(),
                pass_fds=(listener.fileno(),),
                env=os.environ | _MALLOC,
            )
        except OSError as error:
            ours.close()
            raise Outside(f"the admission process cannot be started: {error.strerror}") from error
    return AdmissionChild(process, await open_channel(ours, FromProcess))


@dataclass(frozen=True)
class AdmissionSources:
    """What the process needs from the controller."""

    configuration: LiveConfiguration
    certificates: CertificateStore
    refusal: Callable[[Demand], str]
    metrics: Metrics


class AdmissionProcess:
    """Keeps one such process running."""

    def __init__(
        self,
        sources: AdmissionSources,
        clock: Clock,
        start: Callable[[socket.socket], Awaitable[AdmissionChild]] = start_child,
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._start = start
        self._channel: Channel[FromProcess] | None = None
        self._answered = 0
        """How many pings the process has answered."""
        sources.configuration.listeners.append(self._configure)
        sources.certificates.listeners.append(self._certify)

    async def run(self, listener: socket.socket) -> None:
        """Serve admission on `listener` until canceled. Requests that have been read are answered before the end."""
        failures = FailureLog(log, "Admission is started again: %s")
        while True:
            try:
                await self._run_one(listener)
            except Outside as error:
                if self._answered:
                    failures.succeeded()
                await self._clock.sleep(failures.failed(error))

    async def _run_one(self, listener: socket.socket) -> None:
        """Raises Outside when the process must be replaced."""
        child = await self._start(listener)
        self._channel, self._answered = child.channel, 0
        attending = asyncio.create_task(self._attend(child.channel))
        watching = asyncio.create_task(self._watch(child.channel))
        try:
            self._configure()
            self._certify()
            done, _ = await asyncio.wait((attending, watching), return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        except asyncio.CancelledError:
            child.channel.send(Finish())
            await asyncio.wait((attending,), timeout=_END_S)
            raise
        finally:
            self._channel = None
            attending.cancel()
            watching.cancel()
            await child.end()

    async def _attend(self, channel: Channel[FromProcess]) -> None:
        """Answer what the process asks until it has ended, and raise Outside."""
        while (message := await channel.receive()) is not None:
            match message:
                case Asked(number, demand):
                    channel.send(Decided(number, self._sources.refusal(demand)))
                case Reviewed(allowed, seconds):
                    metrics = self._sources.metrics
                    metrics.decisions.labels("admit", "allowed" if allowed else "refused").inc()
                    metrics.seconds.labels("admit").observe(seconds)
                case Pong():
                    self._answered += 1
            await asyncio.sleep(0)  # as many messages may be there, and others wait too
        raise Outside("the admission process has ended")

    async def _watch(self, channel: Channel[FromProcess]) -> None:
        """Ping the process until it gives no answers, and raise Outside."""
        missed = 0
        while missed < (MOST_MISSED if self._answered else MOST_MISSED_AT_START):
            before = self._answered
            channel.send(Ping())
            await self._clock.sleep(PING_S)
            missed = 0 if self._answered > before else missed + 1
        raise Outside(f"the admission process gives no answer within {missed * PING_S:g} s")

    def _configure(self) -> None:
        if self._channel is not None:
            self._channel.send(Configured(pickle.dumps(self._sources.configuration.value)))

    def _certify(self) -> None:
        certificate = self._sources.certificates.served
        if self._channel is not None and certificate is not None:
            self._channel.send(Certified(certificate.certificate, certificate.key))
