"""What the agents have counted since their accounts began."""

from collections.abc import Iterable

from lamina.operations.agent_metrics import read_pages
from lamina.operations.cost.accounts import GPUS, LABELS, PAST, WORKLOADS, ClusterAccounts
from lamina.ports.kube import Object, ProxiedKube
from lamina.report.cluster_use import samples


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
