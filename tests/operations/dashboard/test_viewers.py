"""What viewers from elsewhere see: what the API server lets each of them list, and nothing without its answer."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from lamina.operations.dashboard import viewer_server
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument
from lamina.operations.dashboard.viewer_server import MAX_STREAMS_OF_ONE
from lamina.operations.dashboard.viewers import HIDDEN_REASON, KEPT_S, DashboardViewers
from lamina.ports.caller_reviews import MAX_KEPT, CallerVerdict
from lamina.ports.clock import FakeClock
from lamina.ports.kube import Unreachable
from lamina.ports.listener import Address, listening
from lamina.report.cluster_reader import ClusterObjects
from lamina.report.cluster_use import ClusterUse
from tests.operations.dashboard.events import Events
from tests.operations.dashboard.servers import viewer_server_of
from tests.operations.dashboard.uses import use_of
from tests.operations.dashboard.viewers import ViewersKube, two_teams
from tests.waiting import until


class Served:
    """A dashboard for viewers, with its address and a client."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.kube, self.clock, self.board = ViewersKube(), FakeClock(), Board()
        self.address, self.session = address, session

    async def status(self, path: str = "events", **headers: str) -> tuple[int, str]:
        async with self.session.get(self.address + path, headers=headers) as response:
            return response.status, "" if response.status == 200 else await response.text()

    @contextlib.asynccontextmanager
    async def events(self, token: str) -> AsyncIterator[Events]:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.session.get(f"{self.address}events", headers=headers) as response:
            assert response.status == 200
            yield Events(response)

    async def first(self, token: str) -> dict[str, Any]:
        async with self.events(token) as events:
            return (await events.next())[1]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with aiohttp.ClientSession() as session:
        made = Served("", session)
        server = viewer_server_of(made.board, made.clock, made.kube)
        async with listening("the dashboard", server.application(), Address("127.0.0.1", 0)) as address:
            made.address = f"http://{address}/"
            made.board.post(two_teams())
            use = ClusterUse()
            for uid in "ab":
                use.join(use_of(f"team-{uid}", f"{uid}-pod", "main", used_mib=1000, peak_mib=2000, busy_percent=20))
            made.board.use(use, "http://agent-of-team-a: no answer", 5.0)
            try:
                yield made
            finally:
                made.board.close()


async def test_a_viewer_of_one_namespace_sees_its_pods_alone(served: Served) -> None:
    first = await served.first("of-a")
    assert set(first["changes"]["pods"]) == {"a", "w"}
    assert first["changes"]["nodes"] == {} and first["nodes_hidden"] and first["changes"]["cluster"]["gpus"] == 0
    assert first["namespace"] == "team-a" and "team-b" not in json.dumps(first) and "b-pod" not in json.dumps(first)


async def test_a_viewer_of_inventories_sees_what_others_hold_without_names(served: Served) -> None:
    first = await served.first("of-b")
    assert set(first["changes"]["pods"]) == {"b"}
    [gpu] = first["changes"]["nodes"]["n"]["gpus"]
    assert [(part["pod"], part["name"], part["memory_mib"], part["cores"]) for part in gpu["parts"]] == [
        ("b", "team-b/b-pod", 4000, 30),
        ("", "other namespaces", 4000, 30),
    ]
    shown = json.dumps(first["changes"])
    assert "team-a" not in shown and "a-pod" not in shown and "waits" not in shown


async def test_a_viewer_of_everything_sees_everything(served: Served) -> None:
    first = await served.first("of-all")
    assert set(first["changes"]["pods"]) == {"a", "b", "w"} and not first["nodes_hidden"]
    assert served.board.current.usage_problem == first["usage_problem"]
    assert first["changes"]["pods"]["w"]["why"] == ["team-b/old holds 4000 MiB"]


async def test_who_may_list_nothing_sees_nothing(served: Served) -> None:
    first = await served.first("of-none")
    assert first["changes"]["pods"] == {} == first["changes"]["nodes"] and first["usage_problem"] == ""


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Basic of-all"}, {"Authorization": "Bearer wrong"}, {"Lamina-Token": "wrong"}]
)
async def test_without_an_accepted_token_there_are_no_events(served: Served, headers: dict[str, str]) -> None:
    status, said = await served.status(**headers)
    assert status == 401 and said.startswith("send a token")


async def test_the_page_sends_its_token_where_proxies_keep_authorization(served: Served) -> None:
    async with served.session.get(f"{served.address}events", headers={"Lamina-Token": "of-a"}) as response:
        assert set((await Events(response).next())[1]["changes"]["pods"]) == {"a", "w"}


async def test_without_the_api_server_nothing_is_shown(served: Served) -> None:
    served.kube.failure = Unreachable("no answer")
    status, _ = await served.status(Authorization="Bearer of-all")
    assert status == 503


async def test_answers_of_the_api_server_hold_for_a_minute(served: Served) -> None:
    await served.first("of-a")
    asked = len(served.kube.asked)
    await served.first("of-a")
    assert len(served.kube.asked) == asked
    await served.clock.advance(KEPT_S)
    await served.first("of-a")
    assert len(served.kube.asked) == 2 * asked


async def test_rights_that_are_lost_take_pods_from_the_page(served: Served) -> None:
    async with served.events("of-a") as events:
        await events.next()
        served.kube.rights["of-a"] = ()
        await served.clock.advance(KEPT_S)
        gone: dict[str, Any] = {}
        while not gone:
            kind, event = await events.next()
            gone = event["changes"]["pods"] if kind == "change" else {}
        assert gone == {"a": None, "w": None}


async def test_a_token_that_is_not_accepted_any_more_ends_the_stream(served: Served) -> None:
    async with served.events("of-a") as events:
        await events.next()
        del served.kube.rights["of-a"]
        await served.clock.advance(KEPT_S)
        ended = False
        while not ended:
            ended = await events.next() == ("", {})


async def test_a_new_namespace_is_asked_about(served: Served) -> None:
    served.board.post(ClusterDocument())
    async with served.events("of-a") as events:
        assert (await events.next())[1]["changes"]["pods"] == {}
        served.board.post(two_teams())
        assert set((await events.next())[1]["changes"]["pods"]) == {"a", "w"}


async def test_files_and_probes_need_no_token_and_tell_nothing(served: Served) -> None:
    for path in ("", "page.js", "style.css", "healthz", "readyz"):
        async with served.session.get(served.address + path) as response:
            assert response.status == 200 and "team-" not in await response.text()
    async with served.session.get(served.address) as response:
        assert response.headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert (await served.status("viewers.py"))[0] == 404 and served.kube.asked == []


async def test_a_dashboard_that_has_read_nothing_is_not_ready() -> None:
    clock = FakeClock()
    server = viewer_server_of(Board(), clock, ViewersKube())
    async with listening("it", server.application(), Address("127.0.0.1", 0)) as at, aiohttp.ClientSession() as session:
        statuses = [(await session.get(f"http://{at}/{path}")).status for path in ("healthz", "readyz")]
    assert statuses == [200, 503]


async def test_viewers_come_by_https() -> None:
    clock, board, said = FakeClock(), Board(), []
    server = viewer_server_of(board, clock, ViewersKube())
    task = asyncio.ensure_future(server.serve(Address("127.0.0.1", 0), [asyncio.Event().wait], said.append))
    try:
        await until(lambda: said, task=task)
        async with aiohttp.ClientSession() as session, session.get(f"{said[0]}healthz", ssl=False) as response:
            assert response.status == 200 and said[0].startswith("https://")
    finally:
        task.cancel()


async def test_only_who_may_list_everything_may_ask_whether_pods_fit(served: Served) -> None:
    served.board.objects = ClusterObjects([], [], [], [])
    answers = {token: await served.status("fits", Authorization=f"Bearer {token}") for token in ("of-a", "of-b")}
    sentence = "you may not list inventories and the pods of all namespaces, on which an answer depends"
    assert set(answers.values()) == {(400, sentence)}
    assert await served.status("fits", Authorization="Bearer of-all") == (200, "")
    assert (await served.status("fits"))[0] == 401


@pytest.mark.parametrize(("token", "cost"), [("of-all", 2.5), ("of-b", None)])
async def test_costs_are_for_those_who_may_list_everything(served: Served, token: str, cost: float | None) -> None:
    document = two_teams()
    figures = msgspec.structs.replace(document.cluster, cost_per_hour=2.5, currency="EUR", used_mib=7)
    served.board.post(msgspec.structs.replace(document, cluster=figures), 100.0)
    first = await served.first(token)
    assert first["changes"]["cluster"]["cost_per_hour"] == cost and first["allocation"][-1][5] == cost
    assert ("EUR" in json.dumps(first)) == (cost is not None)


async def test_who_may_not_list_inventories_gets_no_sums(served: Served) -> None:
    figures = msgspec.structs.replace(two_teams().cluster, used_mib=7, nodes_without_inventory=3)
    served.board.post(msgspec.structs.replace(two_teams(), cluster=figures), 100.0)
    first = await served.first("of-a")
    assert first["allocation"] == [] and first["changes"]["cluster"]["used_mib"] is None
    assert [row["text"] for row in first["attention"]] == []
    assert [group["pods"] for group in first["waiting"]] == [[["w", "team-a/waits"]]]


async def changed(events: Events) -> dict[str, Any]:
    """The changes of the next event that has some."""
    while True:
        kind, event = await events.next()
        assert kind, "the stream has ended"
        if kind == "change":
            return dict(event["changes"])


async def flooded(served: Served, connections: int) -> list[asyncio.Task[tuple[int, str]]]:
    """Questions with unknown tokens, while the API server answers none."""
    served.kube.answers.clear()
    tokens = (f"Bearer stranger-{number}" for number in range(connections))
    flood = [asyncio.create_task(served.status(Authorization=token)) for token in tokens]
    await until(lambda: len(served.kube.asked) >= 2)
    return flood


async def test_strangers_do_not_end_the_stream_of_a_viewer(served: Served) -> None:
    async with served.events("of-all") as events:
        await events.next()
        asked = len(served.kube.asked)
        flood = await flooded(served, 80)
        await served.clock.advance(KEPT_S)
        served.board.post(ClusterDocument())
        await until(lambda: len(served.kube.asked) > asked + 2)
        served.kube.answers.set()
        assert set((await changed(events))["pods"]) == {"a", "b", "w"}
        assert {status for status, _ in await asyncio.gather(*flood)} == {401, 429}


async def test_a_stream_goes_on_once_the_api_server_answers_again(served: Served) -> None:
    async with served.events("of-all") as events:
        await events.next()
        served.kube.failure = Unreachable("no answer")
        await served.clock.advance(KEPT_S)
        served.board.post(ClusterDocument())
        asked = len(served.kube.asked)
        await until(lambda: len(served.kube.asked) > asked, clock=served.clock)
        served.kube.failure = None
        following = asyncio.create_task(changed(events))
        await until(following.done, clock=served.clock)
        assert set(following.result()["pods"]) == {"a", "b", "w"}


async def test_one_account_has_a_part_of_the_streams(served: Served) -> None:
    accounts = [f"system:serviceaccount:evil:sa-{number}" for number in range(MAX_STREAMS_OF_ONE + 1)]
    served.kube.rights |= dict.fromkeys(accounts, (("team-a", "pods"),))
    async with contextlib.AsyncExitStack() as opened:
        for account in accounts[:-1]:
            await opened.enter_async_context(served.events(account))
        status, said = await served.status(Authorization=f"Bearer {accounts[-1]}")
        assert status == 503 and said.startswith(f"you have {MAX_STREAMS_OF_ONE} pages")
        assert set((await served.first("of-a"))["changes"]["pods"]) == {"a", "w"}


async def test_who_may_list_nothing_takes_half_of_the_streams_at_most(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer_server, "MAX_STREAMS", 4)
    served.kube.rights |= {"none-2": (), "none-3": ()}
    async with contextlib.AsyncExitStack() as opened:
        for token in ("of-none", "none-2"):
            await opened.enter_async_context(served.events(token))
        assert (await served.status(Authorization="Bearer none-3"))[0] == 503
        assert (await served.first("of-a"))["changes"]["pods"]
        await opened.enter_async_context(served.events("of-all"))


async def test_many_tokens_of_one_namespace_push_no_viewer_out() -> None:
    kube, clock = ViewersKube(), FakeClock()
    viewers = DashboardViewers(kube, clock)
    many = [f"system:serviceaccount:evil:sa-{number}" for number in range(2 * MAX_KEPT)]
    kube.rights |= dict.fromkeys(many, ())
    for token in ("of-all", *many):
        assert not isinstance(await viewers.access(token, "", []), CallerVerdict)
    asked = len(kube.asked)
    await viewers.access("of-all", "", [])
    assert len(kube.asked) == asked and viewers.account(many[-1]) == "system:serviceaccount:evil"


@pytest.mark.parametrize(("token", "shown"), [("of-a", False), ("of-pods", False), ("of-all", True)])
async def test_who_may_not_list_inventories_sees_nothing_about_nodes(served: Served, token: str, shown: bool) -> None:
    document = two_teams()
    reason, ways_out = "node gpu-node-7: needs 9000 MiB; the best GPU has 3360 MiB free", ("move x on gpu-node-7",)
    waits = msgspec.structs.replace(document.pods["w"], reason=reason, ways_out=ways_out)
    served.board.post(msgspec.structs.replace(document, pods={**document.pods, "w": waits}))
    served.kube.rights["of-pods"] = (("", "pods"),)
    first = await served.first(token)
    assert ("gpu-node-7" in json.dumps(first)) == shown
    assert first["changes"]["pods"]["w"]["reason"] == (reason if shown else HIDDEN_REASON)
