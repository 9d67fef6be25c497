"""Answers the agent on a Unix socket that only root, or the user who runs the service, can use."""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from lamina.errors import BadInput, Outside
from lamina.ports.files import Files
from lamina.ports.mps import Hangs, Mps
from lamina.ports.mps.service_client import MAX_BYTES, MpsCall, Reply, Request
from lamina.ports.supervision import stop_event

log = logging.getLogger(__name__)

_REQUEST_S = 10.0
_GPU = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")


class MpsService:
    """Answers with what `daemons` do. A request that fails affects no other."""

    def __init__(self, daemons: Mps) -> None:
        self._daemons = daemons

    @asynccontextmanager
    async def listening(self, socket: Path) -> AsyncIterator[None]:
        """Serve at `socket` while the block runs. Raises Outside, and BadInput if another service does so already."""
        if await _answers(socket):
            raise BadInput(f"another MPS service listens at {socket}; run only one on a node")
        Files().make_folder(socket.parent)
        mask = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._connected, socket, limit=MAX_BYTES)
        except OSError as error:
            raise Outside(f"cannot listen at {socket}: {error.strerror or error}") from error
        finally:
            os.umask(mask)
        try:
            yield
        finally:
            server.close()
            Files().remove(socket)

    async def answer(self, line: bytes) -> Reply:
        """The reply to a request. Raises nothing: a failure is a reply."""
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.DecodeError as error:
            return Reply(error=f"the MPS service cannot read the request: {error}")
        if _GPU.fullmatch(request.gpu) is None or not request.home.root.is_absolute():
            return Reply(error=f"the MPS service needs a GPU's UUID and an absolute path, got {request.home}")
        try:
            return await self._do(request)
        except Outside as error:
            return Reply(error=str(error), hangs=isinstance(error, Hangs))
        except Exception as error:
            log.exception("Cannot %s the MPS daemon of %s", request.call.value, request.gpu)
            return Reply(error=f"defect of the MPS service: {error or type(error).__name__}")

    async def _do(self, request: Request) -> Reply:
        if request.call is MpsCall.ASK:
            return Reply(answer=await self._daemons.ask(request.home, request.command))
        if request.call is MpsCall.START:
            await self._daemons.start(request.home)
        else:
            await self._daemons.end(request.home)
        return Reply()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                line = await reader.readline()
            writer.write(msgspec.json.encode(await self.answer(line)) + b"\n")
            await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:
            log.info("A request to the MPS service was given up: %s", str(error) or type(error).__name__)
        finally:
            writer.close()


async def _answers(socket: Path) -> bool:
    """Whether a process listens there. A socket that a killed one left does not count."""
    try:
        _, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    writer.close()
    return True


async def run(socket: Path, daemons: Mps) -> None:
    """Serve at `socket` until SIGTERM. Raises BadInput or Outside if it cannot start.

    Daemons live on where nothing else ends them: outside of a container.
    """
    stop = stop_event()
    async with MpsService(daemons).listening(socket):
        log.info("The MPS service listens at %s", socket)
        await stop.wait()
    log.info("The MPS service has stopped")
