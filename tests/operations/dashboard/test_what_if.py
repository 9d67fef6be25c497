"""The form that asks whether pods would fit now: its answers, what it refuses, and who may ask."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from lamina.configuration import load
from lamina.errors import BadInput
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.forms import WantedPods, wanted_pods, what_if
from lamina.ports.clock import FakeClock
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, RESOURCE_QUOTAS
from lamina.report.cluster_reader import ClusterObjects
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, small
from tests.operations.dashboard.servers import server_of
from tests.worlds.clusters import cluster, inventory


async def objects(*quotas: dict[str, Any], config_map: Any = None) -> ClusterObjects:
    """A node with one T4."""
    kube = await cluster(inventory())
    for quota in quotas:
        await kube.create(RESOURCE_QUOTAS, quota)
    return ClusterObjects(
        inventories=(await kube.list(INVENTORIES)).items,
        grants=(await kube.list(GRANTS)).items,
        pods=(await kube.list(PODS)).items,
        quotas=(await kube.list(RESOURCE_QUOTAS)).items,
        config_map=config_map,
    )


@pytest.mark.parametrize(
    ("wanted", "fits", "first"),
    [
        (WantedPods(), True, "1 GPU fits now on n GPU 0."),
        (WantedPods(memory=4000, cores=30), True, "1 GPU with 4000 MiB and 30 % of its time fits now on n GPU 0."),
        (WantedPods(pods=3, memory=4000), True, "All 3 pods of 1 GPU with 4000 MiB fit now: 3 on n GPU 0."),
        (WantedPods(pods=4, memory=4000), False, "3 of 4 pods of 1 GPU with 4000 MiB fit now: 3 on n GPU 0."),
        (WantedPods(memory=99999), False, "1 GPU with 99999 MiB does not fit now: node n: needs 99999 MiB; the "),
        (WantedPods(gpus=2, cores=10), False, "2 GPUs each with 10 % of its time does not fit now: "),
    ],
)
async def test_pods_are_tried_as_fits_does(wanted: WantedPods, fits: bool, first: str) -> None:
    answer = what_if(await objects(), wanted, "default")
    assert answer.fits is fits
    assert answer.lines[0].startswith(first)


async def test_a_quota_of_the_namespace_counts() -> None:
    quota = {"metadata": {"name": "q", "namespace": "team"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "1000"}}}
    read = await objects(quota)
    assert not what_if(read, WantedPods(memory=4000), "team").fits
    assert what_if(read, WantedPods(memory=4000), "default").fits


async def test_the_names_are_those_of_the_configuration() -> None:
    text = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\ndialects: {hami: {resources: {memory: a.b/mib}}}"
    load(text, "test")
    config_map = {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {"lamina.yaml": text}}
    assert what_if(await objects(config_map=config_map), WantedPods(memory=4000), "default").fits


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, WantedPods()),
        ({"memory": "", "cores": " "}, WantedPods()),
        ({"pods": "2", "gpus": "3", "memory": "10", "cores": "5"}, WantedPods(pods=2, gpus=3, memory=10, cores=5)),
    ],
)
def test_what_the_form_sends(query: dict[str, str], expected: WantedPods) -> None:
    assert wanted_pods(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        {"pods": "0"}, {"pods": "1001"}, {"gpus": "0"}, {"gpus": "1025"}, {"memory": "-1"}, {"memory": "1e99"},
        {"memory": "10Gi"}, {"cores": "101"}, {"cores": "x"}, {"other": "1"}, {"pods": "1.5"},
    ],
)  # fmt: skip
def test_other_questions_are_refused_in_one_sentence(query: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=r"^the question cannot be read: .*"):
        wanted_pods(query)


async def test_the_server_answers_who_has_the_token() -> None:
    board = Board()
    async with server_of(board, FakeClock()).serving(0) as address, aiohttp.ClientSession() as session:

        async def asked(query: str, base: str = address) -> tuple[int, str]:
            async with session.get(f"{base}fits?{query}") as response:
                assert "Content-Security-Policy" in response.headers
                return response.status, await response.text()

        assert await asked("") == (503, "the cluster has not been read yet")
        board.objects = await objects()
        status, text = await asked("memory=4000")
        assert status == 200 and json.loads(text)["fits"] is True
        assert (await asked("memory=x"))[0] == 400
        assert (await asked("", f"{address.rsplit('/', 2)[0]}/wrong/"))[0] == 403


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
async def test_the_form_is_answered_by_keyboard(page: Page) -> None:
    page.board.objects = await objects()
    page.board.post(small())
    await page.go("what-if")
    await page.status("Live")
    await page.run("document.querySelector('#fits-memory').focus()")
    await page.keys("4000\ue007")
    await page.until("document.querySelector('#fits-answer').innerText.includes('1 GPU with 4000 MiB fits now')")
    await page.run("document.querySelector('#fits-memory').value = '99999'")
    await page.keys("\ue007")
    await page.until("document.querySelector('#fits-answer').innerText.startsWith('It does not fit now.')")
    (text,) = await page.texts("#fits-answer")
    assert "needs 99999 MiB" in text and "To change that" in text
    assert await page.run("document.querySelector('#fits-answer').getAttribute('role')") == "status"


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
async def test_a_question_without_a_connection_is_answered_by_that(page: Page) -> None:
    page.board.post(small())
    await page.go("what-if")
    await page.status("Live")
    await asyncio.to_thread(page.driver.execute_cdp_cmd, "Network.enable", {})
    await asyncio.to_thread(page.driver.execute_cdp_cmd, "Network.setBlockedURLs", {"urls": ["*fits*"]})
    try:
        await page.run("document.querySelector('#fits').requestSubmit()")
        await page.until("document.querySelector('#fits-answer').innerText === 'No connection to the command.'")
    finally:
        await asyncio.to_thread(page.driver.execute_cdp_cmd, "Network.setBlockedURLs", {"urls": []})
