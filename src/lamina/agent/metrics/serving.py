"""The page that Prometheus reads: `/metrics` of an agent; and what kubelet asks of it, `/healthz` and `/readyz`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lamina.agent.metrics import looking
from lamina.agent.metrics.attributing import PROC, by_pod
from lamina.agent.metrics.families import families
from lamina.agent.metrics.samples import GpuSample
from lamina.agent.offer import Offer
from lamina.agent.plan import Places
from lamina.agent.record import Record
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.listening import Address, listening
from lamina.ports.nvml import GpuProcess, GpuReading, Nvml


class Page:
    """Makes the page anew for each request; nothing is gathered while nobody asks."""

    def __init__(
        self,
        node: str,
        offer: Offer,
        record: Record,
        places: Places,
        files: Files,
        nvml: Nvml,
        clock: Clock,
        *,
        named: Sequence[str],
        proc: Path = PROC,
    ) -> None:
        """`named` are the vocabularies beside our own, see `families`."""
        self._node = node
        self._offer = offer
        self._record = record
        self._places = places
        self._files = files
        self._nvml = nvml
        self._clock = clock
        self._named = named
        self._proc = proc
        self._rates = looking.Rates()

    async def text(self) -> bytes:
        """The page as it is now. GPUs that do not answer are told of by what is known without asking them."""
        try:
            readings = dict(await self._nvml.readings())
        except Outside:
            readings = {}
        running = {uuid: await self._running(uuid) for uuid in looking.sharers(self._record.allocations)}
        return await asyncio.to_thread(self._text, readings, running)

    async def _running(self, uuid: str) -> tuple[GpuProcess, ...] | None:
        """The processes on a GPU or MIG device; None where it does not tell."""
        try:
            return await self._nvml.processes(uuid)
        except Outside:
            return None

    @property
    def ready(self) -> bool:
        """Whether the node's inventory is known, so that the node can be used."""
        return self._offer.inventory.value is not None

    def _text(self, readings: dict[str, GpuReading], running: dict[str, tuple[GpuProcess, ...] | None]) -> bytes:
        published = self._offer.inventory.value
        parts = looking.parts(self._offer.gpus.values(), readings)
        holders = looking.sharers(self._record.allocations)
        shares = looking.shares(
            self._record.allocations,
            self._places,
            readings=readings,
            parts=parts,
            shared={
                uuid: None if found is None else by_pod(found, holders.get(uuid, ()), self._proc)
                for uuid, found in running.items()
            },
            driver_held=published.driver_held if published else (),
            rates=self._rates,
            now=self._clock.monotonic(),
        )
        gpus = [
            GpuSample(
                state=state,
                reading=readings.get(uuid, GpuReading()),
                mps=self._offer.daemon(uuid),
                policy=looking.policy(uuid, shares),
            )
            for uuid, state in self._offer.gpus.items()
        ]
        registry = CollectorRegistry()
        made = families(self._node, self._offer.driver, gpus, list(parts.values()), shares, self._named)
        registry.register(_Made(list(made)))
        return generate_latest(registry)


class _Made(Collector):
    def __init__(self, made: list[Metric]) -> None:
        self._made = made

    def collect(self) -> list[Metric]:
        return self._made


async def serving(page: Page, address: Address, files: Files, address_file: Path) -> None:
    """Serve the page until cancelled; `address_file` holds its URL meanwhile. Raises BadInput where it cannot."""
    asking = asyncio.Lock()

    async def show(request: web.Request) -> web.Response:
        async with asking:
            return web.Response(body=await page.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def live(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(request: web.Request) -> web.Response:
        if page.ready:
            return web.Response(text="ok")
        return web.Response(status=503, text="the node's inventory is not known yet")

    app = web.Application()
    app.router.add_get("/metrics", show)
    app.router.add_get("/healthz", live)
    app.router.add_get("/readyz", ready)
    async with listening("the metrics", app, address) as at:
        files.write(address_file, f"http://{at}/metrics\n".encode())
        await asyncio.Event().wait()
