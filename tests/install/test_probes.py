"""What the manifests' probes ask is answered, and at an address where nothing can be decided."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lamina.agent.metrics.server import MetricsServer
from lamina.controller.extender.service import ExtenderService
from lamina.install import values as install_values
from lamina.install.chart import objects
from lamina.ports.listener import Address, listening
from tests.agent.node import fake_context
from tests.waiting import until

FREE = Address("127.0.0.1", 0)


class Page:
    """An agent's page, before its inventory is known and after."""

    ready = False

    async def text(self) -> bytes:
        return b""


def container_of(part: str, number: int = 0) -> Any:
    made = objects(install_values.plain(install_values.Values()), (1, 30, 0))
    (workload,) = (each for each in made if each["metadata"]["name"] == part and "template" in each.get("spec", {}))
    return workload["spec"]["template"]["spec"]["containers"][number]


def probes(part: str, number: int = 0) -> set[str]:
    """The paths that kubelet asks of a container of a part."""
    container = container_of(part, number)
    return {container[kind]["httpGet"]["path"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}


PARTS = [("lamina-agent", 0), ("lamina-controller", 0), ("lamina-controller", 1), ("lamina-scheduler", 0)]


@pytest.mark.parametrize(("part", "number"), PARTS)
def test_a_part_that_starts_slowly_is_left_to_start(part: str, number: int) -> None:
    probe = container_of(part, number)["startupProbe"]
    assert probe["httpGet"] == container_of(part, number)["livenessProbe"]["httpGet"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 300


async def test_an_agent_is_ready_once_its_inventory_is_known(tmp_path: Path) -> None:
    page: Any = Page()
    node = fake_context(tmp_path)
    file = node.settings.metrics_address
    task = asyncio.create_task(MetricsServer(page, FREE, node).run())
    await until(file.exists, task=task)
    base = file.read_text().strip().removesuffix("/metrics")

    async def reported(session: aiohttp.ClientSession) -> dict[str, int]:
        return {path: (await session.get(base + path)).status for path in probes("lamina-agent")}

    async with aiohttp.ClientSession() as session:
        assert await reported(session) == {"/healthz": 200, "/readyz": 503}
        page.ready = True
        assert await reported(session) == {"/healthz": 200, "/readyz": 200}
    task.cancel()


class Readiness:
    warm = False
    reason = "the ledger is not synced yet"


@pytest.mark.parametrize("warm", [False, True])
async def test_a_controller_is_ready_once_it_could_lead_and_decides_nothing_there(warm: bool) -> None:
    readiness = Readiness()
    readiness.warm = warm
    made: Any = ExtenderService
    service = made(context=None, verbs=None, readiness=readiness, metrics=None, events=None, background=None)
    async with listening("probes", service.probes_application(), FREE) as at, aiohttp.ClientSession() as session:
        reported = {path: (await session.get(f"http://{at}{path}")).status for path in probes("lamina-controller")}
        assert reported == {"/healthz": 200, "/warmz": 200 if warm else 503}
        for verb in ("filter", "filter-to-best", "prioritize", "preempt", "bind"):
            assert (await session.post(f"http://{at}/{verb}", json={})).status == 404
