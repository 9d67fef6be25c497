"""An admission worker in this process. The test is its controller, and its clients send what they like."""

import asyncio
import pickle
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from lamina.configuration import DEFAULT, Config
from lamina.controller.admission import certificates
from lamina.controller.admission.channel import Channel, open_channel
from lamina.controller.admission.messages import Certified, Configured, FromProcess, ToProcess
from lamina.controller.admission.worker import AdmissionWorker
from lamina.ports.clock import FakeClock
from lamina.ports.kube import Object
from lamina.ports.listener import Address, bind

UNVERIFIED = ssl.create_default_context()
UNVERIFIED.check_hostname, UNVERIFIED.verify_mode = False, ssl.CERT_NONE


def review_of(pod: Object) -> bytes:
    request = {"uid": "1", "operation": "CREATE", "namespace": "default", "object": pod}
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@dataclass
class RawClient:
    """One connection, over which requests are sent as bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def head(self, length: int, *more: str, path: str = "/mutate") -> None:
        lines = (f"POST {path} HTTP/1.1", "Host: admission", f"Content-Length: {length}", *more, "", "")
        self.writer.write("\r\n".join(lines).encode())

    def post(self, body: bytes, path: str = "/mutate") -> None:
        self.head(len(body), path=path)
        self.writer.write(body)

    async def status(self) -> int:
        """Of the next answer, whose head is read."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        return int(head.split()[1])

    async def answer(self) -> tuple[int, bytes]:
        """The next answer's status and body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split()[0])
        return int(head.split()[1]), await self.reader.readexactly(length)

    async def ended(self) -> bytes:
        """What still comes until the connection is closed."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


async def connected(port: int, tls: ssl.SSLContext | None = UNVERIFIED) -> RawClient:
    return RawClient(*await asyncio.open_connection("127.0.0.1", port, ssl=tls))


@dataclass
class Worked:
    channel: Channel[FromProcess]
    port: int
    clock: FakeClock
    task: "asyncio.Task[None]"
    clients: list[RawClient] = field(default_factory=list)

    async def client(self) -> RawClient:
        self.clients.append(await connected(self.port))
        return self.clients[-1]


@asynccontextmanager
async def working(config: Config = DEFAULT) -> AsyncIterator[Worked]:
    """A worker that serves. It has to end by itself when its controller is gone."""
    ours, theirs = socket.socketpair()
    channel = await open_channel(ours, FromProcess)
    clock, listener = FakeClock(), bind("admission", Address("127.0.0.1", 0))
    port = listener.getsockname()[1]
    certificate = certificates.create(["127.0.0.1"], datetime.now(UTC))
    task = asyncio.create_task(AdmissionWorker(await open_channel(theirs, ToProcess), clock).run(listener))
    channel.send(Configured(pickle.dumps(config)))
    channel.send(Certified(certificate.certificate, certificate.key))
    worked = Worked(channel, port, clock, task)
    yield worked
    for client in worked.clients:
        client.writer.transport.abort()
    channel.close()
    await asyncio.wait_for(task, 60)
