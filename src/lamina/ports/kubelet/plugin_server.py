"""Serving a device plugin on its socket.

A socket's path has at most 107 bytes; gRPC would only say that binding failed. A socket left by an earlier process is
removed first, because a bind to it fails for ever.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from lamina.errors import BadInput, Outside
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer, add_DevicePluginServicer_to_server

_LONGEST = 107


@asynccontextmanager
async def serving(plugin: DevicePluginServicer, socket: Path) -> AsyncIterator[None]:
    """Serve `plugin` on `socket` for as long as the block runs. Raises BadInput for a long path, Outside if refused."""
    server = grpc.aio.server()
    add_DevicePluginServicer_to_server(plugin, server)
    async with serving_at(server, socket, "device plugins"):
        yield


@asynccontextmanager
async def serving_at(server: grpc.aio.Server, socket: Path, what: str) -> AsyncIterator[None]:
    """Run a server with its services on `socket`, in kubelet's folder of `what`, for as long as the block runs.

    Raises BadInput for a long path, Outside if refused.
    """
    if len(os.fsencode(socket)) > _LONGEST:
        raise BadInput(f"the socket path {socket} must have at most {_LONGEST} bytes")
    if not socket.parent.is_dir():
        raise Outside(f"kubelet's folder of {what}, {socket.parent}, is not there")
    try:
        socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
    except (OSError, RuntimeError) as error:
        raise Outside(f"the plugin cannot listen on {socket}: {error}") from error
    try:
        yield
    finally:
        await server.stop(grace=0.5)
        socket.unlink(missing_ok=True)
