"""`lamina mig`: MIG profiles of cards, MIG devices of nodes, and applying a configuration."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.table import Table

from lamina.cli.connection import ClusterChoice, cluster_command, with_cluster, with_installation
from lamina.cli.lists import ListedCluster, ListForm, ListKind, ListQuery, ListReading, check, list_command, print_list
from lamina.cli.options import NoHeaders, Output, SortBy
from lamina.cli.terminal import say
from lamina.operations.mig import MigNode, ProfileRow, mig_nodes, profile_rows, request_configuration
from lamina.ports.kube import Kube

mig = typer.Typer(help="Show MIG profiles and the MIG devices of nodes, and partition GPUs.", no_args_is_help=True)


@mig.command()
def profiles(
    card: Annotated[str, typer.Argument(help="Only list cards whose name contains this, such as A100-40GB.")] = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
) -> None:
    """List the MIG profiles of each card with their placements. Placement uses the same table.

    `-o wide` adds the architecture, compute capability and memory of the card.
    """
    kind = ListKind(
        row=ProfileRow,
        table=lambda rows, wide: profile_table(rows, wide=wide),
        name=lambda row: f"{row.card}/{row.profile}",
        title=lambda row: f"{row.card}/{row.profile}",
        empty="No card has MIG profiles.",
    )
    form = ListForm(output, sort_by, not no_headers)
    check(kind, form)
    print_list(kind, form, profile_rows(card))


@mig.command("list")
@list_command
def list_nodes(listed: ListedCluster) -> ListQuery[MigNode]:
    """List nodes with MIG devices or a requested MIG configuration: its state and the devices."""
    of_these = "with these labels " if listed.selected else ""
    kind = ListKind(
        row=MigNode,
        table=lambda rows, wide: node_table(rows),
        name=lambda row: f"node/{row.name}",
        title=lambda row: f"node {row.name}",
        empty=f"No node {of_these}has MIG devices or a requested MIG configuration.",
        notes=node_notes,
    )

    async def read(kube: Kube) -> ListReading[MigNode]:
        return ListReading(await mig_nodes(kube, listed.selected))

    return ListQuery(kind, read, reading=with_cluster)


@mig.command()
@cluster_command
def apply(
    choice: ClusterChoice,
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    configuration: Annotated[
        str, typer.Argument(help="Name in mig-parted's file, or a standard one such as all-balanced.")
    ],
) -> None:
    """Request a MIG configuration for a node. Its agent partitions the GPUs once they are not in use."""
    with_installation(choice, lambda kube: request_configuration(kube, node, configuration))
    say(f"Requested {configuration} for node {node}; `lamina mig list` shows its state.")


def profile_table(rows: Sequence[ProfileRow], *, wide: bool = False) -> Table:
    """PLACES are the slices at which an instance may start, and how many it takes."""
    of_card = ("ARCHITECTURE", "CAPABILITY", "CARD MEMORY") if wide else ()
    head = ("CARD", "PROFILE", "ID", "MEMORY", "COMPUTE", "SMS", "MOST", "PLACES", *of_card)
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            row.card,
            row.profile,
            str(row.id),
            "" if row.memory_mib is None else f"{row.memory_mib} MiB",
            f"{row.slices}/{row.card_slices}",
            "" if row.sms is None else str(row.sms),
            str(row.most),
            f"{','.join(map(str, row.starts))}:{row.size}",
            *((row.architecture, row.compute_capability, f"{row.card_gigabytes} GB") if wide else ()),
        )
    return table


def node_table(rows: Sequence[MigNode]) -> Table:
    table = Table("NODE", "CONFIGURATION", "STATE", "DEVICES", box=None, pad_edge=False)
    for node in rows:
        table.add_row(node.name, node.configuration, node.state, ", ".join(node.devices))
    return table


def node_notes(rows: Sequence[MigNode]) -> Iterator[str]:
    """Why configurations failed, and why devices are not offered."""
    for row in rows:
        if row.reason:
            yield f"{row.name} failed: {row.reason}"
        if row.withheld:
            yield f"{row.name} does not offer all of its MIG devices: {row.withheld}"
