"""The server: who gets an answer, what every answer carries, and what the events say."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from lamina.errors import BadInput
from lamina.operations import dashboard
from lamina.operations.dashboard.answers import BEAT_S
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument, PodCard, ShareCard
from lamina.operations.dashboard.server import serve
from lamina.ports.clock import FakeClock
from tests.operations.dashboard.events import Events
from tests.operations.dashboard.servers import server_of
from tests.operations.dashboard.uses import use_of
from tests.waiting import until

PAGE = Path(dashboard.__file__).with_name("page")
FILES = ("", *sorted(path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file()))


class Served:
    """A server with its address, and a client."""

    def __init__(self, board: Board, clock: FakeClock, address: str, session: aiohttp.ClientSession) -> None:
        self.board, self.clock, self.address, self.session = board, clock, address, session

    async def get(self, path: str = "", **headers: str) -> tuple[int, str, dict[str, str]]:
        async with self.session.get(self.address + path, headers=headers) as response:
            return response.status, await response.text(), dict(response.headers)

    @contextlib.asynccontextmanager
    async def events(self) -> AsyncIterator[Events]:
        async with self.session.get(f"{self.address}events") as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            yield Events(response)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    board, clock = Board(), FakeClock()
    async with server_of(board, clock).serving(0) as address, aiohttp.ClientSession() as session:
        yield Served(board, clock, address, session)


def document(*names: str) -> ClusterDocument:
    return ClusterDocument(pods={name: PodCard(namespace="default", name=name, state="running") for name in names})


@pytest.mark.parametrize("name", FILES)
async def test_files_are_served_with_headers_that_keep_the_page_to_itself(served: Served, name: str) -> None:
    status, body, headers = await served.get(name)
    assert status == 200 and body
    assert headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store" and "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", ["absent.js", "view.py", "..%2fserver.py", "page.js/"])
async def test_no_other_file_is_served(served: Served, path: str) -> None:
    status, _, headers = await served.get(path)
    assert status == 404 and "Content-Security-Policy" in headers


@pytest.mark.parametrize("token", ["", "wrong", "%00", "é"])
async def test_without_the_token_nothing_is_shown(served: Served, token: str) -> None:
    root = served.address.rsplit("/", 2)[0]
    for path in ("", "page.js", "events"):
        async with served.session.get(f"{root}/{token}/{path}") as response:
            assert response.status == 403 and "lamina dashboard" in await response.text()


async def test_tokens_are_long_and_new_for_each_server(served: Served) -> None:
    token = served.address.split("/")[-2]
    async with server_of(Board(), FakeClock()).serving(0) as other:
        assert len(token) >= 32 and other.split("/")[-2] != token


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""])
async def test_a_request_that_names_another_host_is_refused(served: Served, host: str) -> None:
    status, body, _ = await served.get(Host=host)
    assert status == 403 and "only at 127.0.0.1" in body


async def test_localhost_is_this_machine(served: Served) -> None:
    port = served.address.split(":")[2].split("/")[0]
    assert (await served.get(Host=f"localhost:{port}"))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_changed(served: Served, method: str) -> None:
    for path in ("", "events"):
        async with served.session.request(method, served.address + path) as response:
            assert response.status == 405


async def test_the_first_event_has_everything_and_later_ones_what_changed(served: Served) -> None:
    served.board.post(document("a", "b"))
    async with served.events() as events:
        kind, first = await events.next()
        assert (kind, first["first"], first["ready"], first["lost"]) == ("change", True, True, "")
        assert set(first["changes"]["pods"]) == {"a", "b"}
        served.board.post(document("b", "c"))
        kind, second = await events.next()
        assert kind == "change" and not second["first"]
        assert second["changes"]["pods"]["a"] is None and set(second["changes"]["pods"]) == {"a", "c"}


async def test_readings_are_sent_when_a_page_asks_for_them(served: Served) -> None:
    share = ShareCard(
        container="main", node="n", gpu="G", index=0, mode="quota", memory_mib=9, most_mib=9, physical_mib=9, cores=0
    )  # fmt: skip
    card = PodCard(namespace="default", name="p", state="running", shares=(share,))
    served.board.post(ClusterDocument(pods={"u": card}))
    for moment in (5.0, 10.0):
        served.board.use(use_of("default", "p", "main", gpu="G", used_mib=7, busy_percent=30), "", moment)
    async with served.events() as events:
        _, first = await events.next()
        assert (first["namespace"], first["read_at"]) == ("default", 10.0) and "use" not in first
    status, text, _ = await served.get("use?pods=u,gone")
    points = [[5.0, 7, 30, 9, None], [10.0, 7, 30, 9, None]]
    assert status == 200 and json.loads(text) == {"u": {"main G": points}}
    assert json.loads((await served.get("pod?uid=u"))[1])["history"]["shares"] == {"main G": points}
    assert [(await served.get(path))[0] for path in ("pod", "pod?uid=x", "gpu?uuid=x", "gpu")] == [404] * 4


async def test_a_lost_api_server_is_in_the_events(served: Served) -> None:
    served.board.post(document("a"))
    async with served.events() as events:
        await events.next()
        served.board.lose("the server does not answer")
        _, lost = await events.next()
        assert lost["lost"] == "the server does not answer" and lost["changes"]["pods"] == {}
        served.board.post(document("a"))
        assert (await events.next())[1]["lost"] == ""


async def test_a_quiet_cluster_has_beats(served: Served) -> None:
    async with served.events() as events:
        kind, first = await events.next()
        assert (kind, first["ready"]) == ("change", False)
        beat = asyncio.ensure_future(events.next())
        while not beat.done():
            await served.clock.advance(BEAT_S)
        assert (await beat)[0] == "beat"


async def test_a_name_cannot_leave_its_event(served: Served) -> None:
    served.board.post(document("a\n\nevent: change\ndata: {}"))
    async with served.events() as events:
        _, first = await events.next()
        assert len(first["changes"]["pods"]) == 1


async def test_streams_end_with_the_server() -> None:
    board = Board()
    async with aiohttp.ClientSession() as session:
        async with server_of(board, FakeClock()).serving(0) as address:
            response = await session.get(f"{address}events")
            await Events(response).next()
        assert await response.content.read() == b""


async def test_a_port_in_use_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=rf"^the dashboard cannot listen on .*:{port}: Address already in use;"):
            async with server_of(Board(), FakeClock()).serving(port):
                pass


async def test_the_address_is_said_once_the_cluster_was_read() -> None:
    board, said = Board(), []

    async def follow() -> None:
        assert said == []
        board.post(document("a"))
        await asyncio.Event().wait()

    serving = asyncio.ensure_future(serve(server_of(board, FakeClock()), 0, [follow], said.append))
    try:
        await until(lambda: said, task=serving)
    finally:
        serving.cancel()
    assert said[0].startswith("http://127.0.0.1:")


async def test_an_error_of_the_feed_ends_the_command_without_an_address() -> None:
    said: list[str] = []

    async def follow() -> None:
        raise BadInput("no rights")

    with pytest.raises(BadInput, match=r"^no rights$"):
        await serve(server_of(Board(), FakeClock()), 0, [follow], said.append)
    assert said == []
