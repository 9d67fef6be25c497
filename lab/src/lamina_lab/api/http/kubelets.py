"""How the API server reaches a node's kubelet for logs and exec.

The API server uses `Kubelets`: tests pass their own, the lab passes `UnixKubelets`. The protocol is HTTP on a Unix
socket per node:

    GET /logs/{namespace}/{pod}/{container}?follow=&tail=&previous=&timestamps=&sinceSeconds=
        200 and the log's bytes as they come. Flags are "true" or "false"; numbers are optional.
    GET /exec/{namespace}/{pod}/{container}?command=..&command=..&tty=&stdin=
        upgraded to a WebSocket with binary frames whose first byte is a channel of lamina_lab.kubernetes.exec_channels.

Any other status carries a plain-text message for the user of kubectl.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

import aiohttp
from msgspec import Struct


class LogOptions(Struct, frozen=True):
    """Which part of a container's log to return. `tail` counts lines; None means all of them."""

    follow: bool = False
    tail: int | None = None
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None

    def query(self) -> list[tuple[str, str]]:
        flags = (("follow", self.follow), ("previous", self.previous), ("timestamps", self.timestamps))
        numbers = (("tail", self.tail), ("sinceSeconds", self.since_seconds))
        return [(name, str(value).lower()) for name, value in flags] + [
            (name, str(value)) for name, value in numbers if value is not None
        ]


class ExecOptions(Struct, frozen=True):
    """What to run in a container, and whether it gets a terminal and standard input."""

    command: tuple[str, ...]
    tty: bool = False
    stdin: bool = False

    def query(self) -> list[tuple[str, str]]:
        flags = [("tty", str(self.tty).lower()), ("stdin", str(self.stdin).lower())]
        return [("command", word) for word in self.command] + flags


class KubeletError(Exception):
    """A kubelet refused or could not be reached. `status` is the HTTP status for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ExecSession(Protocol):
    """A running exec: frames of (channel, bytes) in both directions."""

    async def send(self, channel: int, data: bytes) -> None:
        """Send STDIN bytes, a RESIZE, or a CLOSE of stdin. Does nothing once the session is over."""

    def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        """STDOUT and STDERR frames, then one ERROR frame. Ends when the kubelet closes the session."""

    async def close(self) -> None:
        """Disconnect; the kubelet ends the command."""


class Kubelets(Protocol):
    """The kubelets of all nodes. Both calls raise KubeletError before the first byte, never later."""

    async def logs(
        self, node: str, namespace: str, pod: str, container: str, options: LogOptions
    ) -> AsyncIterator[bytes]: ...

    async def exec(self, node: str, namespace: str, pod: str, container: str, options: ExecOptions) -> ExecSession: ...


class _SocketSession:
    """One exec over a kubelet's WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, channel: int, data: bytes) -> None:
        if not self._socket.closed:
            await self._socket.send_bytes(bytes((channel,)) + data)

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.BINARY and message.data:
                yield message.data[0], message.data[1:]

    async def close(self) -> None:
        await self._socket.close()


class UnixKubelets:
    """Kubelets behind Unix sockets. `socket_of` returns a node's socket, or None if it has no kubelet."""

    def __init__(self, socket_of: Callable[[str], Path | None]) -> None:
        self._socket_of = socket_of
        self._sessions: dict[Path, aiohttp.ClientSession] = {}

    async def logs(
        self, node: str, namespace: str, pod: str, container: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        url = f"http://kubelet/logs/{namespace}/{pod}/{container}"
        try:
            answer = await self._session(node).get(url, params=options.query())
            if answer.status != 200:
                raise KubeletError(answer.status, (await answer.text()).strip())
        except aiohttp.ClientError as error:
            raise KubeletError(502, f"the kubelet of node {node} does not answer: {error}") from error
        return _chunks(answer)

    async def exec(self, node: str, namespace: str, pod: str, container: str, options: ExecOptions) -> ExecSession:
        url = f"http://kubelet/exec/{namespace}/{pod}/{container}"
        session = self._session(node)
        try:
            return _SocketSession(await session.ws_connect(url, params=options.query(), max_msg_size=0))
        except aiohttp.WSServerHandshakeError as error:
            raise KubeletError(error.status, f"the kubelet of node {node} refused: {error.message}") from error
        except aiohttp.ClientError as error:
            raise KubeletError(502, f"the kubelet of node {node} does not answer: {error}") from error

    async def close(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    def _session(self, node: str) -> aiohttp.ClientSession:
        socket = self._socket_of(node)
        if socket is None:
            raise KubeletError(502, f"node {node} has no kubelet")
        if socket not in self._sessions:
            connector = aiohttp.UnixConnector(path=str(socket), limit=0)
            timeout = aiohttp.ClientTimeout(total=None, connect=5)
            self._sessions[socket] = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._sessions[socket]


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except aiohttp.ClientError:
        return  # the kubelet disconnected: the log ends here, as with a real one
    finally:
        answer.close()
