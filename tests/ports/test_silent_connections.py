"""Connections that go silent without an end: a machine that lost power, a proxy or firewall that forgot them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.controller import crds
from lamina.core.objects import write_spec
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.feed import ClusterFeed
from lamina.ports.clock import SystemClock
from lamina.ports.kube import INVENTORIES, NODES, Kube, Object, Unreachable
from lamina.ports.kube import client as client_module
from lamina.ports.kube.client import KubeClient, connect
from lamina.ports.kube.follow import SYNCED, follow
from lamina_lab.api.server import ApiServer, serve
from tests.lab_api.servers import FakeKubelets
from tests.ports.silence import SilentProxy, silent_proxy
from tests.waiting import until
from tests.worlds.clusters import inventory

SILENT_S = 0.5


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    made = await serve(FakeKubelets())
    yield made
    await made.close()


class Way:
    """A client whose way to the server can go silent, and one that reaches it otherwise."""

    def __init__(self, proxy: SilentProxy, client: KubeClient, direct: KubeClient) -> None:
        self.proxy, self.client, self.direct = proxy, client, direct


@pytest.fixture
async def way(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Way]:
    monkeypatch.setattr(client_module, "_SILENT_S", SILENT_S)
    monkeypatch.setattr(client_module, "_TIMEOUT_S", 4 * SILENT_S)
    async with silent_proxy(server.port) as (proxy, port):
        direct, through = tmp_path / "direct", tmp_path / "through"
        server.write_kubeconfig(direct)
        through.write_text(direct.read_text().replace(f":{server.port}", f":{port}"))
        clients = await connect(through), await connect(direct)
        yield Way(proxy, *clients)
        for client in clients:
            await client.close()


def node(name: str) -> Object:
    return {"metadata": {"name": name}}


class Followed:
    """What a follower of nodes says, in order; SYNCED stands for itself."""

    def __init__(self, kube: Kube) -> None:
        self.said: list[str] = []
        self.task = asyncio.ensure_future(self._follow(kube))

    async def _follow(self, kube: Kube) -> None:
        async for event in follow(kube, SystemClock(), NODES):
            self.said.append(event.kind if event.kind == SYNCED else f"{event.kind} {event.object['metadata']['name']}")


async def test_what_happens_behind_a_silent_connection_is_reported_and_nothing_is_listed_again(way: Way) -> None:
    followed = Followed(way.client)
    await until(lambda: followed.said == [SYNCED], task=followed.task)
    await way.direct.create(NODES, node("one"))
    await until(lambda: "ADDED one" in followed.said, task=followed.task)
    way.proxy.silence()
    await way.direct.create(NODES, node("two"))
    await way.direct.delete(NODES, "one")
    await until(lambda: len(followed.said) == 4, lambda: followed.said, within_s=30, task=followed.task)
    assert followed.said == [SYNCED, "ADDED one", "ADDED two", "DELETED one"]
    followed.task.cancel()


async def test_a_watch_with_nothing_to_say_goes_on(way: Way) -> None:
    """Kinds that are not cached by the API server have no bookmarks."""
    followed = Followed(way.client)
    await until(lambda: followed.said == [SYNCED], task=followed.task)
    before = way.proxy.opened
    await until(lambda: way.proxy.opened >= before + 2, task=followed.task)
    assert followed.said == [SYNCED]
    await way.direct.create(NODES, node("late"))
    await until(lambda: followed.said == [SYNCED, "ADDED late"], lambda: followed.said, task=followed.task)
    followed.task.cancel()


async def test_a_watch_that_gets_no_answer_says_that_the_server_is_lost(way: Way) -> None:
    listed = await way.client.list(NODES)
    way.proxy.silence(lasting=True)
    with pytest.raises(Unreachable, match="does not answer"):
        await asyncio.wait_for(anext(way.client.watch(NODES, listed.version)), 30)


@pytest.mark.parametrize("lasting", [False, True], ids=["open connections", "all connections"])
async def test_the_page_does_not_show_as_current_what_is_behind_a_silent_connection(lasting: bool, way: Way) -> None:
    await crds.apply(way.direct)
    board = Board()
    feed = asyncio.ensure_future(ClusterFeed(way.client, SystemClock(), board).run())
    await until(lambda: board.current.ready and not board.current.lost, task=feed)
    way.proxy.silence(lasting=lasting)
    await way.direct.create(INVENTORIES, {**node("late"), "spec": write_spec(inventory("late"))})
    if lasting:
        await until(lambda: board.current.lost, task=feed, within_s=30)
        way.proxy.speak()
    await until(
        lambda: not board.current.lost and "late" in board.current.document.nodes,
        lambda: (board.current.lost, list(board.current.document.nodes)),
        task=feed,
        within_s=60,
    )
    feed.cancel()


async def test_the_kernel_gives_up_connections_whose_other_end_is_gone(server: ApiServer, tmp_path: Path) -> None:
    """A list leaves its connection open for the next request."""
    server.write_kubeconfig(tmp_path / "kubeconfig")
    client = await connect(tmp_path / "kubeconfig")
    await client.list(NODES)
    assert [probes(each) for each in sockets_to(server.port)] == [(1, 10, 5, 3, 25_000)]
    await client.close()


def probes(connection: socket.socket) -> tuple[int, ...]:
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
    return (
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        *(connection.getsockopt(socket.IPPROTO_TCP, name) for name in names),
    )


def sockets_to(port: int) -> list[socket.socket]:
    """This process's connections that lead to a port."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            made = socket.socket(fileno=os.dup(int(each.name)))
        except OSError:
            continue
        with made:
            if made.family == socket.AF_INET and _leads_to(made, port):
                found.append(made.dup())
    return found


def _leads_to(connection: socket.socket, port: int) -> bool:
    try:
        return bool(connection.getpeername()[1] == port)
    except OSError:
        return False
