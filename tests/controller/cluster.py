"""A cluster for the controller's tests: an API server, one or more nodes' inventories, pods, and kube-scheduler."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from lamina.admission import run as admission
from lamina.admission.settings import AdmissionSettings
from lamina.admission.webhook_configuration import PATH
from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.core.gpus import Gpu
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.kube import INVENTORIES, NODES, PODS, Kube, Object
from lamina.ports.listener import Address
from tests.waiting import until
from tests.worlds.objects import gpus, inventory_object, node_object


@dataclass
class Scheduler:
    """Speaks to the extender as kube-scheduler does, with node names."""

    url: str
    session: aiohttp.ClientSession

    async def ask(self, verb: str, body: Object) -> Any:
        async with self.session.post(f"{self.url}/{verb}", json=body) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def filter(self, pod: Object, *nodes: str) -> Any:
        return await self.ask("filter", {"pod": pod, "nodenames": list(nodes)})

    async def bind(self, pod: Object, node: str) -> str:
        meta = pod["metadata"]
        body = {"podName": meta["name"], "podNamespace": meta["namespace"], "podUID": meta["uid"], "node": node}
        return str((await self.ask("bind", body))["error"])


@dataclass
class RunningController:
    """A controller that serves, and the cluster it serves."""

    kube: Kube
    scheduler: Scheduler
    urls: dict[str, str]
    session: aiohttp.ClientSession
    task: "asyncio.Task[None]"
    clock: Clock = field(default_factory=SystemClock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def make(self, pod: Object) -> Object:
        return await self.kube.create(PODS, pod)


@asynccontextmanager
async def running(
    kube: Kube,
    directory: Path,
    *nodes: tuple[str, tuple[Gpu, ...]],
    config: Path | None = None,
    clock: Clock | None = None,
    preemption: bool = False,
) -> AsyncIterator[RunningController]:
    """The controller over `kube` and the machine's clock or `clock`, and admission next to it, ready. Their stop at the
    end has to be clean."""
    clock = clock or SystemClock()
    stop = asyncio.Event()
    addresses, of_admission = directory / "addresses.json", directory / "admission.json"
    free = Address("127.0.0.1", 0)
    reviewing = AdmissionSettings(config=config, bind=free, metrics=free, addresses_file=of_admission)
    admitting = asyncio.create_task(admission.serve(kube, SystemClock(), reviewing, stop))
    reviews = await until(lambda: _read(of_admission), task=admitting)
    port = int(reviews["admission"].removesuffix(PATH).rpartition(":")[2])
    settings = ControllerSettings(
        config=config,
        extender_http=free,
        admission=Address("127.0.0.1", port),
        addresses_file=addresses,
        preemption=preemption,
    )
    task = asyncio.create_task(serve(kube, clock, settings, stop))
    async with aiohttp.ClientSession() as session:
        urls = await until(lambda: _read(addresses), task=task, clock=clock)
        urls |= {"admission": reviews["admission"], "admissionMetrics": reviews["metrics"]}
        for node, given in nodes or (("node-0", gpus()),):
            await kube.create(NODES, node_object(node))
            await kube.create(INVENTORIES, inventory_object(node, *given))
        made = RunningController(kube, Scheduler(urls["extenderHttp"], session), urls, session, task, clock, stop)
        await until(lambda: _offered(made, len(nodes) or 1), task=task, clock=clock)
        yield made
        stop.set()
        await asyncio.wait_for(asyncio.gather(task, admitting), 60)


def _read(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes()) if path.exists() else None


async def _offered(running: RunningController, nodes: int) -> bool:
    """Whether the ledger is synced and knows all inventories."""
    async with running.session.get(f"{running.urls['extenderHttp']}/readyz") as response:
        if response.status != 200:
            return False
    async with running.session.get(f"{running.urls['extenderHttp']}/metrics") as response:
        text = await response.text()
    found = {line.split('node="')[1].split('"')[0] for line in text.splitlines() if "capacity_mebibytes{" in line}
    return len(found) >= nodes
