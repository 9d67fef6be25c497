"""The form that replays a dump: today's placement next to that of policies, and what it refuses."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lamina.errors import BadInput
from lamina.operations.dashboard import forms
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.forms import replay_dump
from lamina.operations.simulate.today import MISFIT, PENDING
from lamina.ports.clock import FakeClock
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, small
from tests.operations.dashboard.servers import server_of
from tests.worlds.clusters import container, pod

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "simulation" / "cluster.yaml"
NODE = {
    "kind": "Node",
    "metadata": {
        "name": "n",
        "labels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB", "nvidia.com/gpu.memory": "32768"},
    },
    "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "2"}},
}


def dump(*pods: dict[str, Any], node: dict[str, Any] = NODE) -> bytes:
    return json.dumps({"kind": "List", "items": [node, *({"kind": "Pod", **each} for each in pods)]}).encode()


def half(name: str, node: str = "") -> dict[str, Any]:
    return pod(name, container(gpu=1, gpumem=16384), node=node)


def test_today_is_what_runs_in_the_dump_and_policies_place_what_waits() -> None:
    answer = replay_dump(dump(half("runs", "n"), half("waits")))
    assert answer.size == "2 pods on 1 nodes with 2 GPUs"
    now, *policies = answer.results
    assert (now.policy, now.placed, now.waiting) == ("today", 1, 1)
    assert now.allocated == pytest.approx(25) and now.reasons == ((PENDING, 1),)
    assert [(each.policy, each.placed, each.waiting) for each in policies] == [("binpack", 2, 0), ("packing", 2, 0)]
    assert all(each.allocated == pytest.approx(50) and each.points[-1][0] == 2 for each in policies)


def test_what_runs_beyond_the_rules_is_counted_apart() -> None:
    large = pod("large", container(gpu=1, gpumem=99999), node="n")
    elsewhere = half("elsewhere", "a-node-that-is-not-in-the-dump")
    (now, *_) = replay_dump(dump(large, elsewhere, half("waits"))).results
    assert now.placed == 0 and dict(now.reasons) == {PENDING: 1, MISFIT: 2}


def test_the_example_is_replayed() -> None:
    answer = replay_dump(EXAMPLE.read_bytes())
    assert [each.policy for each in answer.results] == ["today", "binpack", "packing"]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (b"", "the file"),
        (b"{", "the file is not JSON"),
        (b"[1]", "the file is no dump of Kubernetes objects"),
        (b'{"kind": "List", "items": []}', "the file has no nodes"),
        (dump(), "the file has no pods"),
    ],
)
def test_other_files_are_refused_in_one_sentence(file: bytes, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        replay_dump(file)
    assert str(refused.value).startswith(sentence) and "/tmp" not in str(refused.value)


def test_a_dump_that_would_take_too_long_is_refused_with_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_PODS", 1)
    with pytest.raises(BadInput, match="has 2 pods; with more than 1, use `lamina simulate --html FILE`"):
        replay_dump(dump(half("a"), half("b")))


async def test_the_server_answers_who_has_the_token() -> None:
    async with server_of(Board(), FakeClock()).serving(0) as address, aiohttp.ClientSession() as session:

        async def asked(file: bytes, base: str = address) -> tuple[int, str]:
            async with session.post(f"{base}replay", data=file) as response:
                assert "Content-Security-Policy" in response.headers
                return response.status, await response.text()

        status, text = await asked(dump(half("a")))
        assert status == 200 and json.loads(text)["results"][0]["policy"] == "today"
        assert await asked(b"{}") == (
            400,
            "the file is no dump of Kubernetes objects; make one with kubectl get nodes,pods -A -o json",
        )
        assert (await asked(dump(half("a")), f"{address.rsplit('/', 2)[0]}/wrong/"))[0] == 403


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
async def test_a_file_is_replayed_on_the_page(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_bytes(dump(half("runs", "n"), half("waits")))
    page.board.post(small())
    await page.go("what-if")
    await page.status("Live")
    field = await asyncio.to_thread(page.driver.find_element, "css selector", "#dump")
    await asyncio.to_thread(field.send_keys, str(file))
    await page.run("document.querySelector('#replay').requestSubmit()")
    await page.until("document.querySelectorAll('#replay-answer tbody tr').length === 3")
    assert await page.texts("#replay-answer tbody tr:first-child td") == ["25.0 %", "0.0 %", "1", "1"]
    assert await page.run("document.querySelectorAll('#replay-answer polyline').length") == 6
    (text,) = await page.texts("#replay-answer")
    assert "2 pods on 1 nodes with 2 GPUs were replayed." in text and f"1 pod: {PENDING}" in text
