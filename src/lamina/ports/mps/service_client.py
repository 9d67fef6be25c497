"""MPS through the MPS service of the node, which runs the daemons so that they outlive the agent.

One request and one reply per connection, each a line of JSON. The service is replaced later than the agent, so fields
are only added, with defaults, and unknown ones are ignored. Where the service itself does not answer, calls raise
MpsServiceDown, so that the daemons are not taken for dead.
"""

import asyncio
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.errors import Outside
from lamina.ports.mps.protocol import Hangs, Home, MpsServiceDown

MAX_BYTES = 1 << 20
"""Of one message."""
SOCKET = Path("/run/nvidia/mps/lamina.sock")
"""Where the service listens."""


class MpsCall(StrEnum):
    START = "start"
    ASK = "ask"
    END = "end"


class Request(Struct, frozen=True, kw_only=True):
    """One call of the port to MPS. `command` is for `ask`."""

    call: MpsCall
    gpu: str
    root: str
    command: str = ""

    @property
    def home(self) -> Home:
        return Home(self.gpu, Path(self.root))


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`error` is a sentence, empty if the call succeeded; `hangs`: the daemon did not answer in time."""

    answer: str = ""
    error: str = ""
    hangs: bool = False


REPLY_S = 30.0
"""More than the service takes for the slowest call."""


class MpsServiceClient:
    """`socket` is where the service listens."""

    def __init__(self, socket: Path, *, reply_s: float = REPLY_S) -> None:
        self._socket = socket
        self._reply_s = reply_s

    async def start(self, home: Home) -> None:
        await self._call(MpsCall.START, home)

    async def ask(self, home: Home, command: str) -> str:
        return await self._call(MpsCall.ASK, home, command)

    async def end(self, home: Home) -> None:
        await self._call(MpsCall.END, home)

    async def _call(self, call: MpsCall, home: Home, command: str = "") -> str:
        request = Request(call=call, gpu=home.gpu, root=str(home.root), command=command)
        try:
            async with asyncio.timeout(self._reply_s):
                line = await self._exchange(msgspec.json.encode(request) + b"\n")
        except TimeoutError as error:
            raise MpsServiceDown(f"the MPS service of this node gives no answer within {self._reply_s:g} s") from error
        try:
            reply = msgspec.json.decode(line, type=Reply)
        except msgspec.DecodeError as error:
            raise MpsServiceDown(f"the MPS service of this node ended before it answered for {home.gpu}") from error
        if reply.error:
            raise (Hangs if reply.hangs else Outside)(reply.error)
        return reply.answer

    async def _exchange(self, request: bytes) -> bytes:
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket, limit=MAX_BYTES)
        except OSError as error:
            raise MpsServiceDown(
                f"the MPS service of this node does not listen at {self._socket}: {error.strerror or error}; run "
                "`lamina mps` on the node, or install with agent.mps=true"
            ) from error
        try:
            writer.write(request)
            await writer.drain()
            return await reader.readline()
        except (OSError, ValueError):
            return b""
        finally:
            writer.close()
