"""Admission in this process, without a cluster. Its clients send what they like."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from lamina.admission import certificates
from lamina.admission.connections import Connections, serve_on
from lamina.admission.service import AdmissionService, Ask
from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT, Config
from lamina.ports.certificates import server_context, use_certificate
from lamina.ports.clock import FakeClock
from lamina.ports.kube import Object
from lamina.ports.listener import Address, bind
from lamina.ports.set_aside import SetAside

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
    port: int
    clock: FakeClock
    task: "asyncio.Task[None]"
    reviewed: list[bool]
    clients: list[RawClient] = field(default_factory=list)

    async def client(self) -> RawClient:
        self.clients.append(await connected(self.port))
        return self.clients[-1]


@asynccontextmanager
async def working(config: Config = DEFAULT, ask: Ask = lambda demand: "") -> AsyncIterator[Worked]:
    """Admission that serves, and what it reports: whether each object was allowed. Its stop has to be clean."""
    clock, tls, reviewed = FakeClock(), server_context(), list[bool]()
    certificate = certificates.create(["127.0.0.1"], datetime.now(UTC))
    use_certificate(tls, certificate.certificate, certificate.key)
    connections = Connections(tls, clock)

    def report(allowed: bool, seconds: float) -> None:
        reviewed.append(allowed)

    configuration, aside = LiveConfiguration(config, ""), SetAside(logging.getLogger("admission"))
    service = AdmissionService(configuration, ask, report, connections, clock, aside)
    with bind("admission", Address("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        task = asyncio.create_task(serve_on(listener, service.application(), connections))
        worked = Worked(port, clock, task, reviewed)
        yield worked
        for client in worked.clients:
            client.writer.transport.abort()
        task.cancel()
        await asyncio.wait((task,), timeout=60)
        assert task.cancelled()
