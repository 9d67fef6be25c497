"""What agents know of the use of containers over time: peaks, percentiles, and how long pods have been idle."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.core.quantities import MIB
from lamina.operations.agent_metrics import read_pages
from lamina.ports.kube import Object, ProxiedKube
from lamina.report.cluster_use import samples

_PREFIXES = ("lamina_history_", "lamina_pod_idle_")
_QUANTILE = "0.99"


class HistoryOwner(NamedTuple):
    """A container of a workload, in all pods of it."""

    namespace: str
    kind: str
    workload: str
    container: str


class PastUse(NamedTuple):
    """The most that one container used of a GPU. `compute_percent` is what it stayed below for 99 % of the time; None
    if it is not known."""

    memory_peak_mib: int | None = None
    compute_percent: float | None = None
    observed_s: float = 0.0


@dataclass
class UseOverTime:
    """`idle_s` has the seconds since a pod last used a GPU, by namespace, pod and UUID of the GPU."""

    histories: dict[HistoryOwner, PastUse] = field(default_factory=dict)
    idle_s: dict[tuple[str, str, str], float] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """The nodes whose agents did not answer, each with the reason."""

    def add(self, node: str, page: str) -> None:
        """Take in the page of a node's agent, which speaks for its own node only. Raises ValueError, KeyError."""
        for name, labels, value in samples(page, _PREFIXES):
            if labels.get("node") != node:
                continue
            if name == "lamina_pod_idle_seconds":
                self.idle_s[labels["namespace"], labels["pod"], labels["gpu"]] = value
            else:
                self._add_history(name, labels, value)

    def _add_history(self, name: str, labels: Mapping[str, str], value: float) -> None:
        owner = HistoryOwner(labels["namespace"], labels["kind"], labels["workload"], labels["container"])
        known = self.histories.get(owner, PastUse())
        if name == "lamina_history_memory_peak_bytes":
            known = known._replace(memory_peak_mib=max(known.memory_peak_mib or 0, -int(-value // MIB)))
        elif name == "lamina_history_observed_seconds":
            known = known._replace(observed_s=known.observed_s + value)
        elif name == "lamina_history_compute_percent" and labels["quantile"] == _QUANTILE:
            known = known._replace(compute_percent=max(known.compute_percent or 0.0, value))
        self.histories[owner] = known


async def read_use_over_time(kube: ProxiedKube, nodes: Iterable[str], pods: Iterable[Object]) -> UseOverTime:
    """Ask the agents of these nodes. `pods` are those of the cluster."""
    use = UseOverTime()
    use.silent = await read_pages(kube, nodes, pods, use.add)
    return use
