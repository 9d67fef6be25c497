"""Where `lamina top` has its rows from: a cluster, or whatever else says what GPUs and shares use."""

import asyncio
import platform
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from lamina.cli.cluster_warnings import silent_agents, warnings
from lamina.operations import agent_metrics, workloads
from lamina.operations.local_machine import read_usable_machine
from lamina.ports.clock import Clock
from lamina.ports.kube import ProxiedKube
from lamina.report import cluster_reader
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView
from lamina.report.gpus import GpuRow, gpu_rows
from lamina.report.pods import UnplacedPod, waiting_pods
from lamina.report.shares import PodShare, all_shares


class TopReading(NamedTuple):
    """What there is at one moment."""

    gpus: Sequence[GpuRow] = ()
    shares: Sequence[PodShare] = ()
    waiting: Sequence[UnplacedPod] = ()
    at: float | None = None
    """The wall clock; None before the first reading."""
    silent: int = 0
    """Nodes whose agents did not answer."""
    notes: Sequence[str] = ()
    """Sentences about what the reading lacks."""


class TopSource(Protocol):
    """What the screen is about. Both calls may take their time and may be canceled. They raise LaminaError."""

    name: str
    """For the title of the screen, such as the server of a cluster."""

    async def read(self) -> TopReading:
        """All rows as they are now."""
        ...

    async def why(self, namespace: str, pod: str) -> Sequence[str]:
        """The lines of `lamina why` about a pod."""
        ...


class TopCluster:
    """The rows of a cluster. What is computed of many pods is computed in a thread, so that keys do not wait for it."""

    def __init__(self, kube: ProxiedKube, clock: Clock, name: str) -> None:
        self._kube, self._clock, self.name = kube, clock, name

    async def read(self) -> TopReading:
        """Raises Outside, BadInput."""
        objects = await cluster_reader.read_objects(self._kube, claims=True)
        cluster = await asyncio.to_thread(cluster_reader.view_of, objects)
        use = await agent_metrics.read_use(self._kube, cluster.inventories, cluster.pods)
        return await asyncio.to_thread(_rows, cluster, use, self._clock.wall())

    async def why(self, namespace: str, pod: str) -> Sequence[str]:
        """Raises Outside, and BadInput where there is no such pod."""
        cluster = await cluster_reader.read(self._kube, hosts=True, claims=True, groups=True)
        explained = await workloads.explain(self._kube, cluster, namespace, f"pod/{pod}")
        return [*(f"Warning: {each}" for each in warnings(cluster)), *explained.lines]


class TopMachine:
    """The runs and GPUs of this machine, without Kubernetes."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.name = clock, platform.node()

    async def read(self) -> TopReading:
        """Raises Outside where the machine has neither a GPU nor a run."""
        machine = await asyncio.to_thread(read_usable_machine)
        shares, gpus = await asyncio.to_thread(lambda: (machine.shares, machine.gpu_rows))
        return TopReading(gpus, shares, (), self._clock.wall(), 0, machine.warnings)

    async def why(self, namespace: str, pod: str) -> Sequence[str]:
        """Runs never wait."""
        return [f"{pod} runs; `lamina ps` shows its limits, its peak and what it was refused."]


def _rows(cluster: ClusterView, use: ClusterUse, now: float) -> TopReading:
    return TopReading(
        gpu_rows(cluster, use),
        all_shares(cluster, use),
        waiting_pods(cluster),
        now,
        len(use.silent),
        [*silent_agents(use), *warnings(cluster)],
    )
