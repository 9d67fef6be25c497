"""The connections of admission: how many there may be, and which one gives way to another.

Anybody can connect and then send nothing. While there are as many connections as there may be, the one that has been
quiet for longest gives way, so no number of silent ones keeps out the API server, which connects again when it has to.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web

from lamina.ports.clock import Clock

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 128
GRACE_S = 0.5
"""As long as a connection may be quiet in any case; many that come at once wait to be accepted."""
_POLL_S = 0.05
_HANDSHAKE_S = 10.0
_FAREWELL_S = 1.0
"""For a client's part in the end of TLS, which a hostile one leaves out."""


@dataclass(frozen=True)
class _Accepted:
    """One connection. The handshake's result is its transport, or None where it failed."""

    client: socket.socket
    handshake: "asyncio.Task[asyncio.BaseTransport | None]"

    @property
    def is_closed(self) -> bool:
        """Whether its memory is free, which is later than the end of its last request."""
        return self.client.fileno() == -1

    def abort(self) -> None:
        if not self.handshake.done():
            self.handshake.cancel()
        elif isinstance(transport := self.handshake.result(), asyncio.WriteTransport):
            transport.abort()


class Connections:
    """Accepts connections and closes quiet ones: those whose request has not been read completely."""

    def __init__(self, tls: ssl.SSLContext, clock: Clock, *, most: int = MAX_CONNECTIONS) -> None:
        self._tls = tls
        self._clock = clock
        self._most = most
        self._accepted: dict[web.RequestHandler, _Accepted] = {}
        self._quiet_since: dict[web.RequestHandler, float] = {}
        """For each connection that is quiet."""

    @property
    def count(self) -> int:
        """How many are open."""
        for handler in [handler for handler, accepted in self._accepted.items() if accepted.is_closed]:
            self._forget(handler)
        return len(self._accepted)

    @contextlib.contextmanager
    def kept(self, handler: web.RequestHandler) -> Iterator[None]:
        """Meanwhile the connection does not give way, because its request is being answered."""
        self._quiet_since.pop(handler, None)
        try:
            yield
        finally:
            if handler in self._accepted:
                self._quiet_since[handler] = self._clock.monotonic()

    async def accept(self, listener: socket.socket, server: web.Server) -> None:
        """Accept connections for `server` until canceled. `listener` does not block."""
        loop = asyncio.get_running_loop()
        while True:
            await self._make_room()
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("Cannot accept a connection: %s", error.strerror)
                await self._clock.sleep(_POLL_S)
                continue
            handler = server()
            self._accepted[handler] = _Accepted(client, loop.create_task(self._shake_hands(client, handler)))
            self._quiet_since[handler] = self._clock.monotonic()
            await asyncio.sleep(0)  # so that the others go on while many connect

    async def _shake_hands(self, client: socket.socket, handler: web.RequestHandler) -> asyncio.BaseTransport | None:
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: handler,
                client,
                ssl=self._tls,
                ssl_handshake_timeout=_HANDSHAKE_S,
                ssl_shutdown_timeout=_FAREWELL_S,
            )
        except OSError as error:
            log.debug("A connection was not established: %s", error)
            return None
        return transport

    async def _make_room(self) -> None:
        """Wait until one more may be open. The one that is quiet for longest gives way."""
        while self.count >= self._most:
            quietest = min(self._quiet_since, key=self._quiet_since.__getitem__, default=None)
            if quietest is not None and self._clock.monotonic() - self._quiet_since[quietest] >= GRACE_S:
                self._forget(quietest).abort()
            else:
                await self._clock.sleep(_POLL_S)

    def _forget(self, handler: web.RequestHandler) -> _Accepted:
        self._quiet_since.pop(handler, None)
        return self._accepted.pop(handler)


_IDLE_S = 30.0
"""After which a connection without a request is closed."""
_END_S = 4.0
"""For the requests that are being answered when admission is to end."""


async def serve_on(listener: socket.socket, application: web.Application, connections: Connections) -> None:
    """Serve until canceled. What has been read then is answered before the end."""
    listener.setblocking(False)
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=_END_S,
        keepalive_timeout=_IDLE_S,
        handler_cancellation=True,
        lingering_time=0.0,
        auto_decompress=False,
    )
    await runner.setup()
    assert runner.server is not None
    try:
        await connections.accept(listener, runner.server)
    except asyncio.CancelledError:
        listener.close()  # those who still wait to be accepted can try another replica at once
        raise
    finally:
        await runner.cleanup()
