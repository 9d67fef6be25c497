"""Connections to admission: the one that is quiet for longest gives way, and none that is being answered."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiohttp import web

from lamina.admission import certificates
from lamina.admission.connections import GRACE_S, Connections
from lamina.ports.certificates import server_context, use_certificate
from lamina.ports.clock import FakeClock
from lamina.ports.listener import Address, bind
from tests.controller.admission_worker import UNVERIFIED, RawClient, connected
from tests.waiting import until

MAX_CONNECTIONS = 2


class Door:
    """A server whose answers wait until they are let go."""

    def __init__(self) -> None:
        tls, made = server_context(), certificates.create(["127.0.0.1"], datetime.now(UTC))
        use_certificate(tls, made.certificate, made.key)
        self.clock = FakeClock()
        self.connections = Connections(tls, self.clock, most=MAX_CONNECTIONS)
        self.clients: list[RawClient] = []
        self.begun, self.let_go = 0, asyncio.Event()
        self.listener = bind("admission", Address("127.0.0.1", 0))
        self.listener.setblocking(False)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        with self.connections.kept(request.protocol):
            self.begun += 1
            await self.let_go.wait()
        return web.Response(text="ok")

    async def client(self) -> RawClient:
        return await self.connected(UNVERIFIED)

    async def connected(self, tls: ssl.SSLContext | None) -> RawClient:
        self.clients.append(await connected(self.listener.getsockname()[1], tls))
        return self.clients[-1]

    async def a_client_comes(self) -> RawClient:
        """A further client, for which time passes until it is accepted."""
        coming = asyncio.create_task(self.client())
        await until(coming.done, clock=self.clock, step_s=GRACE_S)
        return await coming


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = Door()
    server = web.Server(made.answer)
    accepting = asyncio.create_task(made.connections.accept(made.listener, server))
    yield made
    accepting.cancel()
    made.listener.close()
    made.let_go.set()
    for client in made.clients:
        client.writer.transport.abort()
    server.pre_shutdown()
    await server.shutdown(60)


async def test_the_quietest_connection_gives_way(door: Door) -> None:
    first = await door.client()
    await door.clock.advance(0.1)
    second = await door.client()
    third = await door.a_client_comes()
    assert await first.ended() == b"" and door.connections.count == MAX_CONNECTIONS
    door.let_go.set()
    for client in (second, third):
        client.head(0)
        assert await client.status() == 200


async def test_a_connection_that_is_being_answered_stays(door: Door) -> None:
    first = await door.client()
    first.head(0)
    await until(lambda: door.begun)
    silent = [await door.client()]
    silent += [await door.a_client_comes() for _ in range(3)]
    for client in silent[:-1]:
        assert await client.ended() == b""
    door.let_go.set()
    assert await first.status() == 200


async def test_nobody_gives_way_at_once(door: Door) -> None:
    clients = [await door.client() for _ in range(MAX_CONNECTIONS)]
    coming = asyncio.create_task(door.client())
    door.let_go.set()
    for client in clients:
        client.head(0)
        assert await client.status() == 200
    assert not coming.done()
    clients[0].writer.close()
    await until(coming.done, clock=door.clock)
    assert coming.exception() is None


async def test_a_client_that_leaves_out_the_end_of_tls_is_dropped(door: Door) -> None:
    client = await door.client()
    client.writer.transport.pause_reading()
    client.writer.write(b"nonsense\r\n\r\n")
    await until(lambda: door.connections.count == 0)


async def test_connections_that_have_failed_do_not_count(door: Door) -> None:
    stranger = await door.connected(None)
    stranger.writer.write(b"no handshake\n")
    await stranger.ended()
    await until(lambda: door.connections.count == 0)
    client = await door.client()
    assert door.connections.count == 1
    client.writer.transport.abort()
    await until(lambda: door.connections.count == 0)
