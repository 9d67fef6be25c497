"""The page that Prometheus reads: `/metrics` of an agent; and what kubelet asks of it, `/healthz` and `/readyz`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lamina.agent.metrics import looking
from lamina.agent.metrics.families import families
from lamina.agent.metrics.samples import GpuSample, Part
from lamina.agent.offer import Offer
from lamina.agent.plan import Places
from lamina.agent.record import Record
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.listening import Address, listening
from lamina.ports.nvml import GpuReading, Nvml


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
        self._rates = looking.Rates()

    async def text(self) -> bytes:
        """The page as it is now. GPUs that do not answer are told of by what is known without asking them."""
        try:
            readings = dict(await self._nvml.readings())
        except Outside:
            readings = {}
        return await asyncio.to_thread(self._text, readings)

    @property
    def ready(self) -> bool:
        """Whether the node's inventory is known, so that the node can be used."""
        return self._offer.inventory.value is not None

    def _text(self, readings: dict[str, GpuReading]) -> bytes:
        published = self._offer.inventory.value
        gpus = [
            GpuSample(state=state, reading=readings.get(uuid, GpuReading()), mps=self._offer.daemon(uuid))
            for uuid, state in self._offer.gpus.items()
        ]
        parts = {
            each.uuid: Part(uuid, each) for uuid, state in self._offer.gpus.items() for each in state.facts.instances
        }
        shares = looking.shares(
            self._record.allocations,
            self._places,
            self._files,
            readings=readings,
            parts=parts,
            driver_held=published.driver_held if published else (),
            rates=self._rates,
            now=self._clock.monotonic(),
        )
        registry = CollectorRegistry()
        registry.register(_Made(list(families(self._node, self._offer.driver, gpus, shares, self._named))))
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
