"""Two controllers over one API server: who answers, and how the next one follows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.ports.clock import SystemClock
from lamina.ports.kube import PODS
from lamina.ports.kube.fake import FakeKube
from lamina.ports.listener import Address
from tests.controller.cluster import Scheduler, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod


@asynccontextmanager
async def follower(kube: FakeKube, directory: Path) -> AsyncIterator[str]:
    """A second replica over the same server; yields its extender's URL."""
    stop, free, addresses = asyncio.Event(), Address("127.0.0.1", 0), directory / "two.json"
    settings = ControllerSettings(
        extender_http=free, admission=free, metrics=free, addresses_file=addresses, identity="two"
    )
    task = asyncio.create_task(serve(kube, SystemClock(), settings, stop))
    await until(addresses.exists, task=task)
    yield msgspec.json.decode(addresses.read_bytes())["extenderHttp"]
    stop.set()
    await asyncio.wait_for(task, 60)


async def ready(session: aiohttp.ClientSession, url: str, path: str = "readyz") -> tuple[int, str]:
    async with session.get(f"{url}/{path}") as response:
        return response.status, await response.text()


async def test_one_answers_and_the_other_follows_when_it_ends(tmp_path: Path) -> None:
    kube = FakeKube()
    async with aiohttp.ClientSession() as session, running(kube, tmp_path) as first, follower(kube, tmp_path) as url:
        second = Scheduler(url, session)
        pods = [await kube.create(PODS, admitted_pod(f"p{i}", gpumem=20_000)) for i in range(3)]

        async def follows() -> bool:
            return "does not lead" in (await ready(session, url))[1]

        await until(follows)
        assert (await ready(session, url, "warmz"))[0] == 200
        assert "does not lead" in (await second.filter(pods[0], "node-0"))["error"]
        assert "does not lead" in await second.bind(pods[0], "node-0")
        assert await first.scheduler.bind(pods[0], "node-0") == ""
        first.stop.set()

        async def leads() -> bool:
            return (await ready(session, url))[0] == 200

        await until(leads)
        assert await second.bind(pods[1], "node-0") == ""
        assert "20000 MiB" in await second.bind(pods[2], "node-0")


async def test_who_may_not_answer_ends_the_connection(tmp_path: Path) -> None:
    """The scheduler would keep it for ever, and ask a replica that led before and lives on instead of the leader."""
    kube = FakeKube()
    async with aiohttp.ClientSession() as session, running(kube, tmp_path) as first, follower(kube, tmp_path) as url:
        pod = await kube.create(PODS, admitted_pod("pod", gpumem=1000))
        asked = {"filter": {"pod": pod, "nodenames": ["node-0"]}, "prioritize": {"pod": pod, "nodenames": ["node-0"]}}
        asked["filter-to-best"] = asked["filter"]
        named = {"podName": "pod", "podNamespace": "default", "podUID": pod["metadata"]["uid"]}
        asked["bind"] = named | {"node": "node-0"}
        asked["preempt"] = {"Pod": pod, "NodeNameToMetaVictims": {}}
        for verb, body in asked.items():
            async with session.post(f"{url}/{verb}", json=body) as response:
                assert response.headers.get("Connection") == "close", verb
            async with session.post(f"{first.scheduler.url}/{verb}", json=body) as response:
                assert response.headers.get("Connection") != "close", verb
