"""What a client may send to the extender: as much as kube-scheduler sends, at once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.controller.extender import protocol
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import RunningController, running
from tests.waiting import PATIENCE_S
from tests.worlds.objects import admitted_pod

MAX_NAME = 253
VERBS = ["filter", "filter-to-best", "prioritize", "preempt", "bind"]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    async with running(FakeKube(), tmp_path) as made:
        yield made


def large_pod() -> dict[str, Any]:
    """As large as the API server accepts an object."""
    pod = admitted_pod(gpumem=1000)
    pod["metadata"] |= {"uid": "5d4e", "annotations": {"note": "x" * 3 * 2**20}}
    return pod


async def test_five_thousand_nodes_by_name_are_few_bytes(cluster: RunningController) -> None:
    names = ["node-0", *(f"{number:0{MAX_NAME}}" for number in range(4999))]
    answer = await cluster.scheduler.filter(large_pod(), *names)
    assert answer["nodenames"] == ["node-0"] and len(answer["failedNodes"]) == 4999


async def test_all_pods_of_a_tenth_of_five_thousand_nodes_are_few_bytes(cluster: RunningController) -> None:
    pods = {"Pods": [{"UID": f"{number:036}"} for number in range(250)], "NumPDBViolations": 0}
    victims = {f"{number:0{MAX_NAME}}": pods for number in range(500)}
    body = {"Pod": large_pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    assert await cluster.scheduler.ask("preempt", body) == {"nodeNameToMetaVictims": {}}


@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_larger_is_refused_with_the_setting_that_helps(cluster: RunningController, verb: str) -> None:
    body = b" " * (protocol.MAX_BODY + 1)
    async with cluster.session.post(f"{cluster.urls['extenderHttp']}/{verb}", data=body) as response:
        error = (await response.json())["error"]
    assert response.status == 200 and "more than 16 MiB; set nodeCacheCapable to true" in error


async def test_who_sends_a_part_is_not_waited_for(cluster: RunningController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READ_S", 0.01)
    host, port = cluster.urls["extenderHttp"].removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /bind HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    answer = await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_S)
    writer.close()
    assert b"the request did not arrive within 0.01 s" in answer and b"Connection: close" in answer
