"""`lamina gpus`: each GPU of a cluster, with what is granted, used and free."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.operations.agent_metrics import ClusterUse
    from lamina.operations.cluster_view import ClusterView
    from lamina.operations.gpu_rows import GpuRow
    from lamina.ports.kube import ProxiedKube

_OUTPUTS = ("table", "wide", "json", "name")
_SHOWN_NODES = 5


def gpus(
    node: Annotated[str, typer.Option("--node", help="Only the GPUs of this node.", show_default=False)] = "",
    sort: Annotated[
        str,
        typer.Option("--sort", help="Order: node, model, mode, granted, used, free, busy or pods, the largest first."),
    ] = "node",
    output: Annotated[
        str, typer.Option("--output", "-o", help="Form: table, wide (with UUIDs and pods), json or name.")
    ] = "table",
    kubeconfig: Kubeconfig = None,
) -> None:
    """List GPUs: memory and compute granted, used and free, slots, mode, health, and the pods on them.

    What is used comes from the metrics of the agents; `-` is what is not known.
    """
    from lamina.cli.connection import warn_of_refused_configuration, with_cluster
    from lamina.operations import agent_metrics, cluster_view, gpu_rows

    one_of(output, _OUTPUTS, "--output")
    one_of(sort, gpu_rows.ORDERS, "--sort")

    async def read(kube: "ProxiedKube") -> "tuple[ClusterView, ClusterUse]":
        cluster = await cluster_view.read(kube)
        nodes = [node] if node in cluster.inventories else cluster.inventories
        return cluster, await agent_metrics.read_use(kube, nodes, cluster.pods)

    cluster, use = with_cluster(kubeconfig, read)
    warn_of_refused_configuration(cluster)
    rows = gpu_rows.in_order(gpu_rows.gpu_rows(cluster, use), sort)
    if node:
        rows = gpu_rows.of_node(rows, node, cluster)
    _print(rows, output, use)


def _print(rows: "Sequence[GpuRow]", output: str, use: "ClusterUse") -> None:
    import msgspec

    from lamina.cli.terminal import console, print_table

    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if output == "name":
        for row in rows:
            typer.echo(f"{row.node}/{row.gpu}")
        return
    if not rows:
        console.print("No node offers a GPU.")
        return
    from lamina.cli.gpu_table import gpu_table

    print_table(console, gpu_table(rows, wide=output == "wide"))
    if use.silent:
        nodes = sorted(use.silent)
        more = f" and {len(nodes) - _SHOWN_NODES} more" if len(nodes) > _SHOWN_NODES else ""
        shown = ", ".join(nodes[:_SHOWN_NODES])
        sentence = f"What GPUs use is not known of {shown}{more}: {use.silent[nodes[0]]}"
        console.print(sentence, markup=False, soft_wrap=True)
