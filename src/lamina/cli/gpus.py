"""`lamina gpus`: each GPU of a cluster, with what is granted, used and free."""

from typing import Annotated

import typer

from lamina.cli.connection import silent_agents, warnings
from lamina.cli.gpu_table import gpu_table
from lamina.cli.lists import ListedCluster, Listing, ListKind, ListReading, list_command
from lamina.cli.options import one_of
from lamina.operations import agent_metrics
from lamina.operations.node_labels import labeled_nodes
from lamina.ports.kube import ProxiedKube
from lamina.report import cluster_view
from lamina.report.gpus import ORDERS, GpuRow, gpu_rows, in_order, of_node


@list_command
def gpus(
    listed: ListedCluster,
    node: Annotated[str, typer.Option("--node", help="Only the GPUs of this node.", show_default=False)] = "",
    sort: Annotated[
        str,
        typer.Option("--sort", help="Order: node, model, mode, granted, used, free, busy or pods, the largest first."),
    ] = "node",
) -> Listing[GpuRow]:
    """List GPUs: memory and compute granted, used and free, slots, mode, health, and the pods on them.

    What is used comes from the metrics of the agents; `-` is what is not known. Labels are those of nodes.
    """
    one_of(sort, ORDERS, "--sort")
    kind = ListKind(
        row=GpuRow,
        table=lambda rows, wide: gpu_table(rows, wide=wide),
        name=lambda row: f"{row.node}/{row.gpu}",
        title=lambda row: f"GPU {row.gpu} of node {row.node}",
        empty=f"No node {'with these labels ' if listed.selected else ''}offers a GPU.",
    )

    async def read(kube: ProxiedKube) -> ListReading[GpuRow]:
        cluster = await cluster_view.read(kube, claims=True)
        names = await labeled_nodes(kube, cluster.inventories, listed.selected)
        asked = [node] if node in cluster.inventories else names
        use = await agent_metrics.read_use(kube, asked, cluster.pods)
        rows = in_order(gpu_rows(cluster, use), sort)
        chosen = of_node(rows, node, cluster) if node else rows
        return ListReading([row for row in chosen if row.node in names], silent_agents(use), warnings(cluster))

    return kind, read
