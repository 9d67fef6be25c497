"""What accounts grew by, as a Prometheus answers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from lamina.errors import BadInput, LaminaError, Outside
from lamina.operations.cost.accounts import ClusterAccount
from lamina.operations.cost.prometheus import checked_since, grown_accounts
from tests.operations.cost.samples import account_samples


class Queried:
    """A server that answers queries as Prometheus does. `text` replaces every answer."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.address = ""
        self.text: str | None = None
        self.status = 200

    async def answer(self, request: web.Request) -> web.Response:
        query = str((await request.post())["query"])
        self.queries.append(query)
        result: list[Any] = []
        for name, labels, value in account_samples("a", "web", memory_requested=7.5, gib_used=2.0):
            if f"({name}[" in query:
                result.append({"metric": labels, "value": [1.5, str(value)]})
        text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})
        return web.Response(text=text if self.text is None else self.text, status=self.status)


@pytest.fixture
async def queried() -> AsyncIterator[Queried]:
    made, app = Queried(), web.Application()
    app.router.add_post("/api/v1/query", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def test_what_grew_is_asked_for_each_series(queried: Queried) -> None:
    accounts = await grown_accounts(f"{queried.address}/", "30d")
    account = ClusterAccount("a", "Deployment", "web", "", "Tesla T4")
    assert accounts.held == {account: {"memory_requested": 7.5, "gib_used": 2.0}} and accounts.gpus == {}
    first = "sum by (namespace, kind, workload, model, part, figure) (increase(lamina_workload_gpu_seconds_total[30d]))"
    assert queried.queries[0] == first and len(queried.queries) == 5


@pytest.mark.parametrize(
    ("status", "text", "sentence"),
    [
        (200, "<html>", "does not answer as Prometheus does, with status 200"),
        (400, '{"status": "error", "error": "parse error"}', "refuses the query: parse error"),
        (503, "{}", "refuses the query: status 503"),
        (200, '{"data": {"result": [{"metric": {}, "value": [1, "2"]}]}}', "has series lamina_workload_gpu_seconds"),
        (200, '{"data": {"result": [{"metric": {}, "value": [1, 2]}]}}', "does not answer as Prometheus does"),
    ],
)
async def test_odd_answers_are_one_sentence(queried: Queried, status: int, text: str, sentence: str) -> None:
    queried.status, queried.text = status, text
    with pytest.raises(Outside, match=sentence):
        await grown_accounts(queried.address, "1h")


@pytest.mark.parametrize(
    ("address", "error"), [("ftp://x", BadInput), ("127.0.0.1:9090", BadInput), ("http://127.0.0.1:1", Outside)]
)
async def test_addresses_that_cannot_be_used(address: str, error: type[LaminaError]) -> None:
    with pytest.raises(error):
        await grown_accounts(address, "1h")


@pytest.mark.parametrize("since", ["", "30", "d", "0d", "1d]) or x", "-1h", "1000000s"])
def test_a_time_is_a_number_with_a_unit(since: str) -> None:
    assert checked_since("30d") == "30d"
    with pytest.raises(BadInput, match="such as 30d"):
        checked_since(since)
