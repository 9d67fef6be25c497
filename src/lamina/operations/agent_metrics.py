"""What GPUs and containers use now, from the metrics of the agents.

The API server passes the requests on, so who can reach it needs no way to the nodes. An agent that does not answer
leaves its node without figures; everything else is known without it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lamina.errors import Outside
from lamina.install.agent import METRICS_PORT
from lamina.install.names import AGENT, NAMESPACE, chosen
from lamina.model.quantities import MIB
from lamina.ports.kube import NODES, PODS, Object, ProxiedKube

_PAGE = "metrics"
_AT_ONCE = 16
"""How many agents are asked at the same time."""
_READ = ("lamina_gpu_", "lamina_container_")
_Holder = tuple[str, str, str]
"""Namespace, pod and container."""


class GpuLoad(NamedTuple):
    """What one GPU does, as far as the driver reports it."""

    used_mib: int | None = None
    busy_percent: float | None = None


class ShareFigures(NamedTuple):
    """What one container does with one GPU."""

    used_mib: int = 0
    limit_mib: int = 0
    borrowed_mib: int = 0
    peak_mib: int = 0
    refusals: int = 0
    busy_percent: float | None = None


@dataclass
class ClusterUse:
    """`gpus` are keyed by UUID, `shares` by container and then by UUID."""

    gpus: dict[str, GpuLoad] = field(default_factory=dict)
    shares: dict[_Holder, dict[str, ShareFigures]] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """The nodes whose agents did not answer, each with the reason."""

    def share(self, holder: _Holder, gpu: str) -> ShareFigures | None:
        """What a container does with a GPU. One that has a MIG device is known by the UUID of that device."""
        known = self.shares.get(holder, {})
        return known.get(gpu) or (next(iter(known.values())) if len(known) == 1 else None)

    def add(self, node: str, page: str) -> None:
        """Take in the page of a node's agent, which speaks for its own node only. Raises ValueError."""
        for name, labels, value in samples(page, _READ):
            if labels.get("node") != node:
                continue
            if name in _OF_GPU:
                use = self.gpus.get(labels["gpu"], GpuLoad())
                self.gpus[labels["gpu"]] = use._replace(**{_OF_GPU[name]: _amount(_OF_GPU[name], value)})
            elif name in _OF_SHARE:
                key = _OF_SHARE[name]
                holder = labels["namespace"], labels["pod"], labels["container"]
                shares = self.shares.setdefault(holder, {})
                share = shares.get(labels["gpu"], ShareFigures())
                before = share.used_mib if key == "used_mib" else 0  # one sample for each kind of allocation
                shares[labels["gpu"]] = share._replace(**{key: before + _amount(key, value)})


_OF_GPU = {"lamina_gpu_memory_used_bytes": "used_mib", "lamina_gpu_utilization_percent": "busy_percent"}
_OF_SHARE = {
    "lamina_container_memory_used_bytes": "used_mib",
    "lamina_container_memory_limit_bytes": "limit_mib",
    "lamina_container_memory_borrowed_bytes": "borrowed_mib",
    "lamina_container_memory_peak_bytes": "peak_mib",
    "lamina_container_memory_refusals_total": "refusals",
    "lamina_container_utilization_percent": "busy_percent",
}


async def read_use(kube: ProxiedKube, nodes: Iterable[str], pods: Iterable[Object]) -> ClusterUse:
    """Ask the agents of these nodes. `pods` are those of the cluster."""
    use = ClusterUse()
    use.silent = await read_pages(kube, nodes, pods, use.add)
    return use


async def read_pages(
    kube: ProxiedKube, nodes: Iterable[str], pods: Iterable[Object], take: Callable[[str, str], None]
) -> dict[str, str]:
    """Call `take` with each of these nodes and the page of its agent; it may raise ValueError or KeyError.

    Returns the nodes whose agents did not answer with a page that can be read, each with the reason.
    """
    agents, turns = _agents(pods), asyncio.Semaphore(_AT_ONCE)
    silent: dict[str, str] = {}

    async def ask(node: str) -> None:
        resource, name, namespace = (PODS, agents[node], NAMESPACE) if node in agents else (NODES, node, "")
        try:
            async with turns:
                page = await kube.proxied(resource, f"{name}:{METRICS_PORT}", _PAGE, namespace=namespace)
            take(node, page.decode())
        except Outside as error:
            silent[node] = str(error)
        except (ValueError, KeyError) as error:
            silent[node] = f"its metrics cannot be read: {error}"

    await asyncio.gather(*map(ask, nodes))
    return silent


def _agents(pods: Iterable[Object]) -> dict[str, str]:
    """The pod of the agent on each node. A lab, and nodes where people start the agent themselves, have none."""
    labels = chosen(AGENT).items()
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["name"]
        for pod in pods
        if pod["metadata"].get("namespace") == NAMESPACE
        and labels <= (pod["metadata"].get("labels") or {}).items()
        and pod["spec"].get("nodeName")
        and (pod.get("status") or {}).get("phase") == "Running"
    }


def samples(page: str, prefixes: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """The samples of families with these prefixes. Others are not parsed, which would take most of the time."""
    own = "".join(f"{line}\n" for line in page.split("\n") if line.startswith(prefixes))
    for family in text_string_to_metric_families(own):
        sample: Sample
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _amount(key: str, value: float) -> Any:
    if key.endswith("_mib"):
        return int(value) // MIB
    return value if key == "busy_percent" else int(value)
