"""The controller's metrics over HTTPS, for callers that the API server allows."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.ports.clock import SystemClock
from lamina.ports.listener import Address
from tests.waiting import until
from tests.worlds.reviews import ReviewingKube

FREE = Address("127.0.0.1", 0)


@pytest.fixture
async def urls(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    addresses, stop = tmp_path / "addresses.json", asyncio.Event()
    settings = ControllerSettings(
        extender_http=FREE, admission=FREE, metrics=FREE, protect_metrics=True, addresses_file=addresses
    )
    kube = ReviewingKube(lambda token: token != "strange", lambda asked: asked["user"] == "prometheus")
    task = asyncio.create_task(serve(kube, SystemClock(), settings, stop))
    await until(addresses.exists, task=task)
    yield msgspec.json.decode(addresses.read_bytes())
    stop.set()
    await task


async def status(url: str, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as response:
        return response.status


async def test_metrics_are_for_callers_that_are_allowed(urls: dict[str, str]) -> None:
    assert urls["metrics"].startswith("https://")
    for address in (urls["metrics"], urls["extenderHttp"]):
        assert await status(f"{address}/metrics") == 401
        assert await status(f"{address}/metrics", "strange") == 401
        assert await status(f"{address}/metrics", "tenant") == 403
        assert await status(f"{address}/metrics", "prometheus") == 200


async def test_probes_need_no_token(urls: dict[str, str]) -> None:
    assert await status(f"{urls['metrics']}/healthz") == 200
