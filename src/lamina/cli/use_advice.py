"""`lamina advise shares` and `lamina advise idle`: advice by what containers used over time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from lamina.cli.options import Kubeconfig, NoHeaders, Output, Selector, SortBy, Watch

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from lamina.cli.lists import ListForm, ListKind, ListReading
    from lamina.operations.advise.shares import IdleShare, ShareAdvice
    from lamina.operations.advise.use_histories import UseOverTime
    from lamina.ports.kube import ProxiedKube
    from lamina.report.cluster_view import ClusterView

R = TypeVar("R", bound=msgspec.Struct)
_HOUR_S = 3600
OneNamespace = Annotated[str, typer.Option("--namespace", "-n", help="Only this namespace.", show_default=False)]


def shares(
    namespace: OneNamespace = "",
    hours: Annotated[
        float, typer.Option("--hours", min=0, help="Only containers whose use is known for so many hours.")
    ] = 24.0,
    selector: Selector = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    watch: Watch = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Suggest what workloads could request by what they used in the last one to two weeks."""
    from lamina.cli.lists import ListForm, ListKind
    from lamina.operations.advise.shares import ShareAdvice, advise_shares
    from lamina.ports.kube.selectors import label_selector

    selected = label_selector(selector) if selector else None
    kind = ListKind(
        row=ShareAdvice,
        table=lambda rows, wide: _share_table(rows),
        name=lambda row: f"{row.kind.lower()}/{row.workload}",
        title=lambda row: f"{row.container} of {row.kind} {row.namespace}/{row.workload}",
        empty="No workload requests more than it used, as far as its use is known.",
        notes=lambda rows: [_gain(rows)],
    )
    form = ListForm(output, sort_by, not no_headers, watch)
    _list(
        kind,
        form,
        kubeconfig,
        lambda cluster, use: advise_shares(
            cluster, use, namespace=namespace, selected=selected, least_s=hours * _HOUR_S
        ),
    )


def idle(
    namespace: OneNamespace = "",
    hours: Annotated[
        float, typer.Option("--hours", min=0, help="Only pods that have not used a GPU for so many hours.")
    ] = 1.0,
    selector: Selector = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    watch: Watch = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List pods that hold GPUs and run nothing on them."""
    from lamina.cli.lists import ListForm, ListKind
    from lamina.operations.advise.shares import IdleShare, idle_shares
    from lamina.ports.kube.selectors import label_selector

    selected = label_selector(selector) if selector else None
    kind = ListKind(
        row=IdleShare,
        table=lambda rows, wide: _idle_table(rows),
        name=lambda row: f"pod/{row.pod}",
        title=lambda row: f"{row.namespace}/{row.pod} on GPU {row.gpu}",
        empty="No pod has been idle for so long, as far as its use is known.",
    )
    form = ListForm(output, sort_by, not no_headers, watch)
    least_s = hours * _HOUR_S
    _list(
        kind,
        form,
        kubeconfig,
        lambda cluster, use: idle_shares(cluster, use, namespace=namespace, selected=selected, least_s=least_s),
    )


def _list(
    kind: "ListKind[R]",
    form: "ListForm",
    kubeconfig: "Path | None",
    rows: "Callable[[ClusterView, UseOverTime], Sequence[R]]",
) -> None:
    from lamina.cli.connection import warnings
    from lamina.cli.lists import ListReading, list_objects
    from lamina.operations.advise.use_histories import read_use_over_time
    from lamina.report import cluster_view

    async def read(kube: "ProxiedKube") -> "ListReading[R]":
        cluster = await cluster_view.read(kube)
        use = await read_use_over_time(kube, cluster.inventories, cluster.pods)
        return ListReading(rows(cluster, use), _silent(use), warnings(cluster))

    list_objects(kind, form, kubeconfig, read)


def _share_table(rows: "Sequence[ShareAdvice]") -> "Table":
    from rich.table import Table

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


def _gain(rows: "Sequence[ShareAdvice]") -> str:
    memory, compute = sum(row.memory_gain for row in rows), sum(row.compute_gain for row in rows)
    return f"This would free the memory of {memory:.1f} GPUs and the compute of {compute:.1f} GPUs."


def _idle_table(rows: "Sequence[IdleShare]") -> "Table":
    from rich.table import Table

    table = Table("NAMESPACE", "POD", "WORKLOAD", "NODE", "GPU", "MEMORY", "IDLE", box=None, pad_edge=False)
    for row in rows:
        gpu = row.gpu if row.index is None else str(row.index)
        table.add_row(
            *(row.namespace, row.pod, f"{row.kind}/{row.workload}", row.node, gpu),
            *(f"{row.memory_mib} MiB", f"{row.idle_s / _HOUR_S:.1f} h"),
        )
    return table


def _silent(use: "UseOverTime") -> list[str]:
    if not use.silent:
        return []
    node, number = min(use.silent), len(use.silent)
    return [f"The use on {number} node{'' if number == 1 else 's'} is not known, first {node}: {use.silent[node]}"]
