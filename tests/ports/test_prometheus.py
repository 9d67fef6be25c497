"""What a Prometheus was asked and answers, also one that lies, answers without end, or not at all."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from lamina.errors import BadInput, Outside
from lamina.ports.listener import Address, listening
from lamina.ports.prometheus import (
    FakePrometheus,
    HttpPrometheus,
    Prometheus,
    Sample,
    Series,
    checked_address,
    in_label,
)


class Answering:
    """A server that gives one answer to everything, or none."""

    def __init__(self) -> None:
        self.address, self.text, self.silent = "", "{}", False
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.connections: set[object] = set()

    async def answer(self, request: web.Request) -> web.Response:
        self.connections.add(request.protocol)
        self.asked.append((request.path, {name: str(value) for name, value in (await request.post()).items()}))
        if self.silent:
            await asyncio.Event().wait()
        return web.Response(text=self.text)

    def result(self, *result: dict[str, Any]) -> None:
        self.text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    made, app = Answering(), web.Application()
    app.router.add_post("/{path:.*}", made.answer)
    async with listening("a fake", app, Address("127.0.0.1", 0)) as address:
        made.address = f"http://{address}"
        yield made


@asynccontextmanager
async def client(server: Answering, *, timeout_s: float = 5, max_bytes: int = 2**20) -> AsyncIterator[HttpPrometheus]:
    made = HttpPrometheus(f"{server.address}/", timeout_s=timeout_s, max_bytes=max_bytes)
    try:
        yield made
    finally:
        await made.close()


async def test_the_past_of_a_query(server: Answering) -> None:
    server.result({"metric": {"gpu": "G"}, "values": [[100, "1"], [160, "2.5"]]})
    async with client(server) as prometheus:
        found = await prometheus.query_range("up", 100.0, 160.0, 60)
    assert found == [Series({"gpu": "G"}, [(100.0, 1.0), (160.0, 2.5)])]
    assert server.asked == [
        ("/api/v1/query_range", {"query": "up", "start": "100.000", "end": "160.000", "step": "60"})
    ]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([[100, "NaN"]], "answers with 'NaN', which is no number, for gpu=G"),
        ([[100, "+Inf"]], "no number"),
        ([[100, "many"]], "no number"),
        ([[100, 7]], "does not answer as Prometheus does"),
        ([["100", "7"]], "does not answer as Prometheus does"),
        ([[100, "7", "8"]], "does not answer as Prometheus does"),
        ([[160, "1"], [100, "1"]], "moments that were not asked for, of gpu=G"),
        ([[100, "1"], [100, "1"]], "moments that were not asked for"),
        ([[9_999_999, "1"]], "moments that were not asked for"),
        ([[-5, "1"]], "moments that were not asked for"),
    ],
)
async def test_what_cannot_be_true_is_refused_by_name(server: Answering, values: Any, sentence: str) -> None:
    server.result({"metric": {"gpu": "G"}, "values": values})
    async with client(server) as prometheus:
        with pytest.raises(Outside, match=sentence):
            await prometheus.query_range("up", 100.0, 160.0, 60)


async def test_an_answer_without_end_is_left_alone(server: Answering) -> None:
    server.text = " " * 2000
    async with client(server, max_bytes=1000) as prometheus:
        with pytest.raises(Outside, match="more than 1000 bytes"):
            await prometheus.query("up")


async def test_an_answer_that_does_not_come_is_not_waited_for(server: Answering) -> None:
    server.silent = True
    async with client(server, timeout_s=0.05) as prometheus:
        with pytest.raises(Outside, match="cannot be read: no answer in 0 s"):
            await prometheus.query("up")


async def test_questions_share_a_connection_until_it_is_closed(server: Answering) -> None:
    server.result()
    async with client(server) as prometheus:
        for _ in range(3):
            assert await prometheus.query("up") == []
        assert await prometheus.query_range("up", 100.0, 160.0, 60) == [] and len(server.connections) == 1
        await prometheus.close()
        assert await prometheus.query("up") == [] and len(server.connections) == 2


async def test_an_answer_that_was_cut_off_spoils_none_of_the_next(server: Answering) -> None:
    server.text = " " * 2**20
    async with client(server, max_bytes=1000) as prometheus:
        with pytest.raises(Outside):
            await prometheus.query("up")
        server.result({"metric": {}, "value": [1, "7"]})
        assert await prometheus.query("up") == [Sample({}, 7.0)]


@pytest.mark.parametrize("address", ["http://127.0.0.1:9090", "https://prometheus.monitoring.svc/base/"])
def test_addresses(address: str) -> None:
    assert checked_address(address, where="--x", example="y") == address.rstrip("/")


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1:9090", "ftp://x", "http://", "http://x:0", "http://x:99999", "http://["]
)
def test_what_is_no_address_is_refused_in_a_sentence(address: str) -> None:
    with pytest.raises(BadInput, match="--x must be an address such as y"):
        checked_address(address, where="--x", example="y")


@pytest.mark.parametrize(
    ("value", "written"), [("a", '"a"'), ('a"} or up{b="', '"a\\"} or up{b=\\""'), ("a\\", '"a\\\\"')]
)
def test_values_of_labels_cannot_end_their_quotes(value: str, written: str) -> None:
    assert in_label(value) == written


async def test_the_fake_answers_what_it_is_given() -> None:
    series, sample = Series({}, [(1.0, 2.0)]), Sample({}, 3.0)
    fake = FakePrometheus({"used": [series]}, {"up": [sample]})
    asked: Prometheus = fake
    assert (
        await asked.query_range("sum(used)", 0.0, 9.0, 3) == [series]
        and await asked.query_range("x", 0.0, 9.0, 3) == []
    )
    assert await asked.query("up == 1") == [sample] and await asked.query("other") == []
    fake.problem = "it is down"
    with pytest.raises(Outside, match="it is down"):
        await asked.query("up")
