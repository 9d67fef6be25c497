"""`lamina advise shares` and `lamina advise idle`: advice by what containers used over time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.table import Table

from lamina.cli.cluster_warnings import warnings
from lamina.cli.lists import ListedCluster, ListKind, ListQuery, ListReading, list_command
from lamina.cli.options import AllNamespaces, OneNamespace
from lamina.operations.advise.shares import IdleShare, ShareAdvice, advise_shares, idle_shares
from lamina.operations.advise.use_histories import UseOverTime, read_use_over_time
from lamina.ports.kube import ProxiedKube
from lamina.report import cluster_reader
from lamina.report.cluster_view import ClusterView

R = TypeVar("R", bound=msgspec.Struct)
_HOUR_S = 3600


@list_command
def shares(
    listed: ListedCluster,
    namespace: OneNamespace = "",
    all_namespaces: AllNamespaces = False,
    hours: Annotated[
        float, typer.Option("--hours", min=0, help="Only containers with at least this many hours of data.")
    ] = 24.0,
) -> ListQuery[ShareAdvice]:
    """Suggest what workloads could request by what they used in the last one to two weeks."""
    namespace = "" if all_namespaces else namespace
    kind = ListKind(
        row=ShareAdvice,
        table=lambda rows, wide: _share_table(rows),
        name=lambda row: f"{row.kind.lower()}/{row.workload}",
        title=lambda row: f"{row.container} of {row.kind} {row.namespace}/{row.workload}",
        empty="No workload requests more than it used, as far as there is data.",
        namespace=namespace,
        notes=lambda rows: [_gain(rows)],
    )

    def rows(cluster: ClusterView, use: UseOverTime) -> Sequence[ShareAdvice]:
        return advise_shares(cluster, use, namespace=namespace, selected=listed.selected, min_s=hours * _HOUR_S)

    return ListQuery(kind, _reading(rows))


@list_command
def idle(
    listed: ListedCluster,
    namespace: OneNamespace = "",
    all_namespaces: AllNamespaces = False,
    hours: Annotated[
        float, typer.Option("--hours", min=0, help="Only pods that have not used a GPU for at least this many hours.")
    ] = 1.0,
) -> ListQuery[IdleShare]:
    """List pods that hold GPUs and run nothing on them."""
    namespace = "" if all_namespaces else namespace
    kind = ListKind(
        row=IdleShare,
        table=lambda rows, wide: _idle_table(rows),
        name=lambda row: f"pod/{row.pod}",
        title=lambda row: f"{row.namespace}/{row.pod} on GPU {row.gpu}",
        empty="No pod has been idle that long, as far as there is data.",
        namespace=namespace,
    )

    def rows(cluster: ClusterView, use: UseOverTime) -> Sequence[IdleShare]:
        return idle_shares(cluster, use, namespace=namespace, selected=listed.selected, min_s=hours * _HOUR_S)

    return ListQuery(kind, _reading(rows))


def _reading(
    rows: Callable[[ClusterView, UseOverTime], Sequence[R]],
) -> Callable[[ProxiedKube], Awaitable[ListReading[R]]]:
    """Reads the cluster and what its containers used, and makes the rows of it."""

    async def read(kube: ProxiedKube) -> ListReading[R]:
        cluster = await cluster_reader.read(kube)
        use = await read_use_over_time(kube, cluster.inventories, cluster.pods)
        return ListReading(rows(cluster, use), _silent(use), warnings(cluster))

    return read


def _share_table(rows: Sequence[ShareAdvice]) -> Table:
    head = ("NAMESPACE", "WORKLOAD", "CONTAINER", "SHARES", "MEMORY", "PEAK", "COULD", "COMPUTE", "P99", "COULD")
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            *(row.namespace, f"{row.kind}/{row.workload}", row.container, str(row.shares)),
            *(f"{row.memory_mib} MiB", f"{row.memory_peak_mib} MiB", f"{row.memory_advised_mib} MiB"),
            *(f"{row.cores} %", "-" if row.compute_percent is None else f"{row.compute_percent:.0f} %"),
            f"{row.cores_advised} %",
        )
    return table


def _gain(rows: Sequence[ShareAdvice]) -> str:
    memory, compute = sum(row.memory_gain for row in rows), sum(row.compute_gain for row in rows)
    return f"This would free the memory of {memory:.1f} GPUs and the compute of {compute:.1f} GPUs."


def _idle_table(rows: Sequence[IdleShare]) -> Table:
    table = Table("NAMESPACE", "POD", "WORKLOAD", "NODE", "GPU", "MEMORY", "IDLE", box=None, pad_edge=False)
    for row in rows:
        gpu = row.gpu if row.index is None else str(row.index)
        table.add_row(
            *(row.namespace, row.pod, f"{row.kind}/{row.workload}", row.node, gpu),
            *(f"{row.memory_mib} MiB", f"{row.idle_s / _HOUR_S:.1f} h"),
        )
    return table


def _silent(use: UseOverTime) -> list[str]:
    if not use.silent:
        return []
    node, number = min(use.silent), len(use.silent)
    return [f"The use on {number} node{'' if number == 1 else 's'} is not known, first {node}: {use.silent[node]}"]
