"""Serving the routes of admission on a socket that is bound."""

import asyncio
import socket

from aiohttp import web

from lamina.admission.connections import Connections

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
