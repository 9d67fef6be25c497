"""The accounts of all nodes together, from the samples of agents or of a Prometheus."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lamina.operations.agent_metrics import read_pages
from lamina.ports.kube import Object, ProxiedKube
from lamina.report.cluster_use import samples

WORKLOADS, LABELS, PAST, GPUS = "lamina_workload_", "lamina_label_", "lamina_past_workload_", "lamina_gpu_seconds_"
SECONDS, GIBIBYTES = "gpu_seconds_total", "memory_gibibyte_seconds_total"


class ClusterAccount(NamedTuple):
    """Whose it is. `kind` and `workload` are empty for a namespace's workloads that are gone or have no account.
    With a `label`, `workload` is its value."""

    namespace: str
    kind: str
    workload: str
    label: str
    model: str


Figures = dict[str, float]
"""GPU-seconds by names such as `memory_requested`, and GiB-seconds such as `gib_requested`."""


@dataclass
class ClusterAccounts:
    """`gpus` have `memory_capacity`, `memory_idle` and the same of compute, by model."""

    held: dict[ClusterAccount, Figures] = field(default_factory=dict)
    gpus: dict[str, Figures] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """The nodes whose agents did not answer, each with the reason."""

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Take in a sample of an agent, or a sum of several. Others are ignored. Raises KeyError."""
        if name == f"{GPUS}total":
            _grow(self.gpus.setdefault(labels["model"], {}), f"{labels['part']}_{labels['figure']}", value)
            return
        for prefix in (WORKLOADS, LABELS, PAST):
            if name in (prefix + SECONDS, prefix + GIBIBYTES):
                part = labels["part"] if name.endswith(SECONDS) else "gib"
                _grow(self.held.setdefault(_account(labels), {}), f"{part}_{labels['figure']}", value)


def _account(labels: Mapping[str, str]) -> ClusterAccount:
    return ClusterAccount(
        namespace=labels["namespace"],
        kind=labels.get("kind", ""),
        workload=labels.get("workload") or labels.get("value", ""),
        label=labels.get("label", ""),
        model=labels["model"],
    )


def _grow(figures: Figures, name: str, value: float) -> None:
    figures[name] = figures.get(name, 0.0) + value


async def total_accounts(kube: ProxiedKube, nodes: Iterable[str], pods: Iterable[Object]) -> ClusterAccounts:
    """Ask the agents of these nodes. `pods` are those of the cluster."""
    accounts = ClusterAccounts()

    def take(node: str, page: str) -> None:
        """An agent speaks for its own node only."""
        for name, labels, value in samples(page, (WORKLOADS, LABELS, PAST, GPUS)):
            if labels.get("node") == node:
                accounts.add(name, labels, value)

    accounts.silent = await read_pages(kube, nodes, pods, take)
    return accounts
