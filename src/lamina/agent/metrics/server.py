"""The agent's HTTP endpoints: `/metrics` for Prometheus, and `/healthz` and `/readyz` for kubelet."""

import asyncio
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.metrics.accountant import NOTHING_WRITTEN, WrittenAccounts
from lamina.agent.metrics.collection import NodeReader, NodeReadings
from lamina.agent.metrics.families import (
    account_families,
    families,
    history_families,
    idle_family,
    look_family,
    price_family,
)
from lamina.core.quantities import MIB
from lamina.dialects.samples import GpuSample
from lamina.ports.caller_reviews import CallerReviews
from lamina.ports.host import Host
from lamina.ports.listener import Address, listening
from lamina.ports.metrics import Handler, build_family, for_allowed_callers, metrics_context
from lamina.ports.nvml import GpuReading


class MetricsPage:
    """Collects everything at each request; accounts of workloads are those that are on disk."""

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        host: Host,
        accounts: Callable[[], WrittenAccounts] = lambda: NOTHING_WRITTEN,
    ) -> None:
        self._node = node
        self._offers = offers
        self._aside = node.aside
        self._reader = NodeReader(node, offers, host)
        self._accounts = accounts

    async def text(self) -> bytes:
        """The current page. GPUs that do not answer have the metrics that are known without asking them."""
        readings = await self._reader.read()
        return await asyncio.to_thread(self._text, readings, self._accounts())

    @property
    def ready(self) -> bool:
        """Whether the node's inventory is known, so that the node can be used."""
        return self._offers.inventory.value is not None

    def _text(self, readings: NodeReadings, written: WrittenAccounts) -> bytes:
        shares = readings.shares
        gpus = [
            GpuSample(
                node=self._node.node,
                driver=self._offers.driver,
                uuid=uuid,
                index=gpu.facts.index,
                model=gpu.facts.name,
                memory_bytes=(gpu.facts.memory_mib or 0) * MIB,
                reason=gpu.reason,
                xid=gpu.xid,
                reading=readings.gpus.get(uuid, GpuReading()),
                mps=self._offers.daemon(uuid),
                shares=tuple(share for share in shares if share.gpu == uuid),
            )
            for uuid, gpu in self._offers.state.gpus.items()
        ]
        registry = CollectorRegistry()
        own = families(self._node.config, gpus, readings.parts.values(), shares, self._aside, readings.claims)
        look = look_family(self._node.node, self._offers.looked_at)
        accounts = [
            *account_families(self._node.node, written.book),
            *history_families(self._node.node, written.histories),
            idle_family(self._node.node, shares, written.book.busy, self._node.clock.wall()),
        ]
        prices = price_family(self._node.node, [gpu.model for gpu in gpus], self._node.config.pricing)
        registry.register(_Collected([*own, *accounts, prices, look, build_family(), self._aside.family()]))
        return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


class MetricsServer:
    """Serves the page at an address. The URL is in a file of the state directory meanwhile."""

    def __init__(self, page: MetricsPage, address: Address, node: NodeContext) -> None:
        self._page = page
        self._address = address
        self._node = node
        self._files = node.files
        self._address_file = node.settings.metrics_address
        self._collecting = asyncio.Lock()

    async def run(self) -> None:
        """Serve until canceled. Raises BadInput if the address cannot be used."""
        app = web.Application()
        app.router.add_get("/metrics", self._handler())
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._readiness)
        tls = metrics_context(self._node.clock.wall()) if self._node.settings.protect_metrics else None
        async with listening("the metrics", app, self._address, tls) as address:
            scheme = "http" if tls is None else "https"
            self._files.write(self._address_file, f"{scheme}://{address}/metrics\n".encode())
            await asyncio.Event().wait()

    def _handler(self) -> Handler:
        if not self._node.settings.protect_metrics:
            return self._metrics
        return for_allowed_callers(self._metrics, CallerReviews(self._node.kube, self._node.clock))

    async def _metrics(self, request: web.Request) -> web.Response:
        async with self._collecting:
            return web.Response(body=await self._page.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readiness(self, request: web.Request) -> web.Response:
        if self._page.ready:
            return web.Response(text="ok")
        return web.Response(status=503, text="the node's inventory is not known yet")
