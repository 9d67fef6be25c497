"""What the admission process does: it serves admission on a socket that the controller has bound.

It knows the configuration and the certificate. Whether some node offers GPUs that kubelet allocates, it asks the
controller.
"""

import asyncio
import itertools
import pickle
import socket
from typing import Any

from aiohttp import web

from lamina.configuration import Config
from lamina.controller.admission.channel import Channel
from lamina.controller.admission.connections import Connections
from lamina.controller.admission.messages import (
    Asked,
    Certified,
    Configured,
    Decided,
    Finish,
    Ping,
    Pong,
    Reviewed,
    ToProcess,
)
from lamina.controller.admission.review import Demand
from lamina.controller.admission.service import AdmissionService
from lamina.errors import Outside
from lamina.ports.certificates.tls import server_context, use_certificate
from lamina.ports.clock import Clock, within

_IDLE_S = 30.0
"""After which a connection without a request is closed."""
_ANSWER_S = 8.0
"""For an answer of the controller; the API server waits for 10 s."""
_END_S = 4.0
"""For the requests that are being answered when the process is to end."""


class AdmissionWorker:
    """Serves from the moment on at which it has a configuration and a certificate."""

    def __init__(self, channel: Channel[ToProcess], clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self._service: AdmissionService | None = None
        self._tls = server_context()
        self._connections = Connections(self._tls, clock)
        self._certified = False
        self._over = asyncio.Event()
        self._able: asyncio.Future[AdmissionService] = asyncio.get_running_loop().create_future()
        self._numbers = itertools.count()
        self._open: dict[int, asyncio.Future[str]] = {}
        """The questions without an answer, by number."""

    async def run(self, listener: socket.socket) -> None:
        """Serve until the controller says so, or is gone."""
        listener.setblocking(False)
        receiving = asyncio.create_task(self._receive())
        serving = asyncio.create_task(self._serve(listener))
        over = asyncio.create_task(self._over.wait())
        tasks: tuple[asyncio.Task[Any], ...] = (receiving, serving, over)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            serving.cancel()
            await asyncio.wait((serving,))  # it answers what it has read, for which decisions are still received
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._channel.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _serve(self, listener: socket.socket) -> None:
        service = await self._able
        runner = web.AppRunner(
            service.application(),
            access_log=None,
            shutdown_timeout=_END_S,
            keepalive_timeout=_IDLE_S,
            handler_cancellation=True,
            lingering_time=0.0,
            auto_decompress=False,
        )
        await runner.setup()
        assert runner.server is not None
        accepting = asyncio.create_task(self._connections.accept(listener, runner.server))
        try:
            await accepting
        finally:
            accepting.cancel()
            listener.close()
            await runner.cleanup()

    async def _receive(self) -> None:
        """Do what the controller says until its end of the channel is closed."""
        try:
            while (message := await self._channel.receive()) is not None:
                self._handle(message)
        finally:
            for question in self._open.values():
                question.cancel()

    def _handle(self, message: ToProcess) -> None:
        match message:
            case Configured(pickled):
                self._use_config(pickle.loads(pickled))
            case Certified(certificate, key):
                use_certificate(self._tls, certificate, key)
                self._certified = True
            case Decided(number, refusal):
                if (question := self._open.pop(number, None)) and not question.done():
                    question.set_result(refusal)
            case Ping():
                self._channel.send(Pong())
            case Finish():
                self._over.set()
        if self._certified and self._service is not None and not self._able.done():
            self._able.set_result(self._service)

    def _use_config(self, config: Config) -> None:
        if self._service is None:
            self._service = AdmissionService(config, self._ask, self._report, self._connections, self._clock)
        self._service.config = config

    async def _ask(self, demand: Demand) -> str:
        number = next(self._numbers)
        question = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            self._channel.send(Asked(number, demand))
            return await within(self._clock, _ANSWER_S, question)
        except TimeoutError as error:
            raise Outside(f"the controller gives no answer within {_ANSWER_S:g} s") from error
        finally:
            self._open.pop(number, None)

    async def _report(self, allowed: bool, seconds: float) -> None:
        self._channel.send(Reviewed(allowed, seconds))
        await self._channel.drain()
