"""What a node's GPUs, MIG devices and containers do at one moment: asks NVML, then reads the files of containers."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.agent.inventory.advertisement import Advertisement
from lamina.agent.metrics import collection
from lamina.agent.metrics.attribution import memory_by_pod
from lamina.agent.state.holdings import Holding, claim_holdings
from lamina.dialects.samples import MigSample, ShareSample
from lamina.errors import Outside
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess, GpuReading

Processes = tuple[GpuProcess, ...]
_KIND = "answer of NVML"


class NodeReadings(NamedTuple):
    """`gpus` and `parts` are keyed by UUID. What does not answer is missing. `claims` have a claim in the place of the
    pod, and its request in that of the container."""

    gpus: Mapping[str, GpuReading]
    parts: Mapping[str, MigSample]
    shares: Sequence[ShareSample]
    claims: Sequence[ShareSample] = ()


class NodeReader:
    """Collects everything at each call, and nothing in between."""

    def __init__(self, node: NodeContext, advertisement: Advertisement, host: Host) -> None:
        self._node = node
        self._record = node.record
        self._advertisement = advertisement
        self._host = host
        self._aside = node.aside
        self._rates = collection.UsageRates()
        self._rates_of_claims = collection.UsageRates()

    async def read(self) -> NodeReadings:
        """GPUs that do not answer leave what is known without asking them."""
        readings: dict[str, GpuReading] = {}
        with suppress(Outside), self._aside.around(_KIND, "readings", passing=Outside):
            readings = dict(await self._node.nvml.readings())
        running = {uuid: await self._processes(uuid) for uuid in collection.sharers(self._record.allocations)}
        return await asyncio.to_thread(self._readings, readings, running)

    async def _processes(self, uuid: str) -> Processes | None:
        """The processes on a GPU or MIG device; None if NVML does not report them."""
        with suppress(Outside), self._aside.around(_KIND, f"processes on {uuid}", passing=Outside):
            return await self._node.nvml.processes(uuid)
        return None

    def _memory_by_pod(self, uuid: str, processes: Processes, uids: Sequence[str]) -> Mapping[str, int] | None:
        with self._aside.around("processes", uuid):
            return memory_by_pod(processes, uids, self._host)
        return None

    def _readings(self, readings: dict[str, GpuReading], running: dict[str, Processes | None]) -> NodeReadings:
        published, state = self._advertisement.inventory.value, self._advertisement.state
        parts = collection.parts(self._node.node, state.observed, readings)
        sharers = collection.sharers(self._record.allocations)
        shared = {
            uuid: self._memory_by_pod(uuid, processes, sharers.get(uuid, ())) if processes is not None else None
            for uuid, processes in running.items()
        }
        daemons = {daemon.gpu: daemon for daemon in published.mps if daemon.ready} if published else {}
        devices = collection.DeviceReadings(self._node.node, readings, parts, shared, daemons)

        def samples(of: Sequence[Holding], rates: collection.UsageRates) -> list[ShareSample]:
            limited = published.driver_limited if published else ()
            now, paths = self._node.clock.monotonic(), self._node.paths
            return collection.shares(
                of, paths, devices, driver_limited=limited, rates=rates, aside=self._aside, now=now
            )

        shares = samples(self._record.allocations, self._rates)
        claims = claim_holdings(self._record.claims)
        return NodeReadings(readings, parts, shares, samples(claims, self._rates_of_claims))
