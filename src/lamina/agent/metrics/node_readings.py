"""What a node's GPUs, MIG devices and containers do at one moment: asks NVML, then reads the files of containers.

Containers that share a GPU by time alone or by MPS have no account of their own, so the driver is asked which processes
are on it; their cgroups name the pods. A pod's number is reported only if every process on the GPU is known; otherwise
some usage would be missing.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.metrics import collection
from lamina.agent.state.holdings import Holding, claim_holdings
from lamina.dialects.samples import MigSample, ShareSample
from lamina.errors import Outside
from lamina.ports.cgroups import is_of_pod
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess, GpuReading

_MPS_SERVER = "nvidia-cuda-mps-server"[:15]
"""The name of the process that serves the clients of MPS. What it holds is no pod's."""


def memory_by_pod(processes: Iterable[GpuProcess], uids: Iterable[str], host: Host) -> Mapping[str, int] | None:
    """Bytes by UID of the pod; None if a process, or what it uses, is not known.

    A pod that is listed twice has several containers on the GPU. Which one uses what is not known, so it is left out.
    """
    listed = list(uids)
    used = dict.fromkeys(listed, 0)
    for process in processes:
        groups = host.process_cgroups(process.pid)
        pod = next((uid for uid in used if is_of_pod(groups, uid)), None)
        if pod is None and host.process_name(process.pid) == _MPS_SERVER:
            continue
        if pod is None or process.memory_bytes is None:
            return None
        used[pod] += process.memory_bytes
    return {uid: size for uid, size in used.items() if listed.count(uid) == 1}


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

    def __init__(self, node: NodeContext, offers: NodeOfferStore, host: Host) -> None:
        self._node = node
        self._record = node.record
        self._offers = offers
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
        published, state = self._offers.inventory.value, self._offers.state
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
