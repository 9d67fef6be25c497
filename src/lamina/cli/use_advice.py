"""`lamina advise shares` and `lamina advise idle`: advice by what containers used over time."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lamina.operations.advise.use_histories import UseOverTime
    from lamina.operations.cluster_view import ClusterView
    from lamina.ports.kube import ProxiedKube

_OUTPUTS = ("table", "json")
_HOUR_S = 3600
OneNamespace = Annotated[str, typer.Option("--namespace", "-n", help="Only this namespace.", show_default=False)]
Output = Annotated[str, typer.Option("--output", "-o", help="Form: table or json.")]


def shares(
    namespace: OneNamespace = "",
    hours: Annotated[
        float, typer.Option("--hours", min=0, help="Only containers whose use is known for so many hours.")
    ] = 24.0,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Suggest what workloads could request by what they used in the last one to two weeks."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.operations.advise.shares import advise_shares

    cluster, use = _read(output, kubeconfig)
    found = advise_shares(cluster, use, namespace=namespace, least_s=hours * _HOUR_S)
    if output == "json":
        _print_json(found)
        return
    head = ("NAMESPACE", "WORKLOAD", "CONTAINER", "SHARES", "MEMORY", "PEAK", "COULD", "COMPUTE", "P99", "COULD")
    table = Table(*head, box=None, pad_edge=False)
    for row in found:
        table.add_row(
            *(row.namespace, f"{row.kind}/{row.workload}", row.container, str(row.shares)),
            *(f"{row.memory_mib} MiB", f"{row.memory_peak_mib} MiB", f"{row.memory_advised_mib} MiB"),
            *(f"{row.cores} %", "-" if row.compute_percent is None else f"{row.compute_percent:.0f} %"),
            f"{row.cores_advised} %",
        )
    if found:
        print_table(console, table)
        memory, compute = sum(row.memory_gain for row in found), sum(row.compute_gain for row in found)
        gain = f"This would free the memory of {memory:.1f} GPUs and the compute of {compute:.1f} GPUs."
        console.print(gain, soft_wrap=True)
    else:
        console.print("No workload requests more than it used, as far as its use is known.")
    _print_silent(use)


def idle(
    namespace: OneNamespace = "",
    hours: Annotated[
        float, typer.Option("--hours", min=0, help="Only pods that have not used a GPU for so many hours.")
    ] = 1.0,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
) -> None:
    """List pods that hold GPUs and run nothing on them."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.operations.advise.shares import idle_shares

    cluster, use = _read(output, kubeconfig)
    found = idle_shares(cluster, use, namespace=namespace, least_s=hours * _HOUR_S)
    if output == "json":
        _print_json(found)
        return
    table = Table("NAMESPACE", "POD", "WORKLOAD", "NODE", "GPU", "MEMORY", "IDLE", box=None, pad_edge=False)
    for row in found:
        gpu = row.gpu if row.index is None else str(row.index)
        idle_h = f"{row.idle_s / _HOUR_S:.1f} h"
        table.add_row(
            row.namespace, row.pod, f"{row.kind}/{row.workload}", row.node, gpu, f"{row.memory_mib} MiB", idle_h
        )
    if found:
        print_table(console, table)
    else:
        console.print("No pod has been idle for so long, as far as its use is known.")
    _print_silent(use)


def _read(output: str, kubeconfig: "Path | None") -> "tuple[ClusterView, UseOverTime]":
    from lamina.cli.connection import warn_of_refused_configuration, with_cluster
    from lamina.operations import cluster_view
    from lamina.operations.advise.use_histories import read_use_over_time

    one_of(output, _OUTPUTS, "--output")

    async def read(kube: "ProxiedKube") -> "tuple[ClusterView, UseOverTime]":
        cluster = await cluster_view.read(kube)
        return cluster, await read_use_over_time(kube, cluster.inventories, cluster.pods)

    cluster, use = with_cluster(kubeconfig, read)
    warn_of_refused_configuration(cluster)
    return cluster, use


def _print_json(rows: "Sequence[object]") -> None:
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())


def _print_silent(use: "UseOverTime") -> None:
    from lamina.cli.terminal import console

    if use.silent:
        node = min(use.silent)
        sentence = f"The use on {len(use.silent)} nodes is not known, first {node}: {use.silent[node]}"
        console.print(sentence, markup=False, soft_wrap=True)
