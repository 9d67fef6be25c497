"""`lamina gpus`: each GPU of a cluster, with what is granted, used and free."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.table import Table

from lamina.cli.cluster_warnings import silent_agents, warnings
from lamina.cli.connection import here_instead
from lamina.cli.lists import ListedCluster, ListKind, ListQuery, ListReading, list_command
from lamina.cli.options import Local, one_of
from lamina.cli.tables import UNKNOWN, amount
from lamina.errors import BadInput
from lamina.operations import agent_metrics
from lamina.operations.local_machine import read_usable_machine
from lamina.operations.node_labels import labeled_nodes
from lamina.ports.kube import ProxiedKube
from lamina.report import cluster_reader
from lamina.report.gpus import HEALTHY, ORDERS, GpuRow, gpu_rows, in_order, of_node


@list_command
def gpus(
    listed: ListedCluster,
    node: Annotated[str, typer.Option("--node", help="Only the GPUs of this node.", show_default=False)] = "",
    sort: Annotated[
        str,
        typer.Option("--sort", help="Order: node, model, mode, granted, used, free, busy or pods, the largest first."),
    ] = "node",
    local: Local = False,
) -> ListQuery[GpuRow]:
    """List GPUs: memory and compute granted, used and free, slots, mode, health, and the pods on them.

    What is used comes from the metrics of the agents; `-` is what is not known. Labels are those of nodes. Without a
    cluster, these are the GPUs of this machine, with the runs of `lamina run` on them.
    """
    one_of(sort, ORDERS, "--sort")
    of_cluster = bool(node or listed.selected)
    if local and of_cluster:
        raise BadInput("--local is about this machine; leave out --node and --selector, which choose nodes")
    kind = ListKind(
        row=GpuRow,
        table=lambda rows, wide: gpu_table(rows, wide=wide),
        name=lambda row: f"{row.node}/{row.gpu}",
        title=lambda row: f"GPU {row.gpu} of node {row.node}",
        empty=f"No node {'with these labels ' if listed.selected else ''}offers a GPU.",
    )

    async def read(kube: ProxiedKube) -> ListReading[GpuRow]:
        cluster = await cluster_reader.read(kube, claims=True)
        names = await labeled_nodes(kube, cluster.inventories, listed.selected)
        asked = [node] if node in cluster.inventories else names
        use = await agent_metrics.read_use(kube, asked, cluster.pods)
        rows = in_order(gpu_rows(cluster, use), sort)
        chosen = of_node(rows, node, cluster) if node else rows
        return ListReading([row for row in chosen if row.node in names], silent_agents(use), warnings(cluster))

    async def here() -> ListReading[GpuRow]:
        machine = await asyncio.to_thread(read_usable_machine)
        rows = in_order(machine.gpu_rows, sort)
        return ListReading(rows, [here_instead(machine.node, local=local)], machine.warnings)

    return ListQuery(kind, read, None if of_cluster else here, local)


_HEAD = ("NODE", "GPU", "MODEL", "MODE", "GRANTED", "USED", "FREE", "COMPUTE", "BUSY", "SLOTS", "STATE")
_LENT = ("LIMIT", "BORROWED")
_MORE = ("FREE COMPUTE", "FREE SLOTS", "UUID")


def gpu_table(rows: Sequence[GpuRow], *, wide: bool) -> Table:
    """GRANTED, USED and FREE are memory, and so are LIMIT and BORROWED, which are there where memory is lent. A wide
    table has the names of pods and the UUIDs too. Only on a machine without Kubernetes, no GPU has slots."""
    lending = any(_lends(row) for row in rows)
    holders = "PODS" if any(row.slots is not None for row in rows) else "RUNS"
    head = (*_HEAD, *(_LENT if lending else ()), *(_MORE if wide else ()), holders)
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        cells = [*_cells(row), *(_lent(row) if lending else ())]
        if wide:
            table.add_row(*cells, *_more(row), "\n".join(row.pods) or UNKNOWN)
        else:
            table.add_row(*cells, str(len(row.pods)))
    return table


def _lends(row: GpuRow) -> bool:
    return row.memory_limit_mib != row.memory_granted_mib


def _cells(row: GpuRow) -> Iterator[str]:
    yield row.node
    yield str(row.index)
    yield row.model
    yield row.mode
    yield f"{UNKNOWN if row.memory_granted_mib is None else row.memory_granted_mib} of {row.memory_mib} MiB"
    yield amount(row.memory_used_mib, "MiB")
    yield amount(row.memory_free_mib, "MiB")
    yield row.compute
    yield amount(row.busy_percent, "%")
    yield UNKNOWN if row.slots_granted is None else f"{row.slots_granted} of {row.slots}"
    yield ", ".join(filter(None, (row.health if row.health != HEALTHY or not row.cordoned else "", _cordon(row))))


def _lent(row: GpuRow) -> Iterator[str]:
    yield amount(row.memory_limit_mib, "MiB")
    yield amount(row.memory_borrowed_mib, "MiB")


def _more(row: GpuRow) -> Iterator[str]:
    yield amount(row.compute_free_percent, "%")
    yield UNKNOWN if row.slots_free is None else str(row.slots_free)
    yield row.gpu


def _cordon(row: GpuRow) -> str:
    return "cordoned" if row.cordoned else ""
