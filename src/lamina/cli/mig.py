"""`lamina mig`: MIG profiles of cards, MIG devices of nodes, and applying a configuration."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, NoHeaders, Output, Selector, SortBy, Watch
from lamina.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from lamina.cli.lists import ListReading
    from lamina.operations.mig import MigNode
    from lamina.ports.kube import Kube

mig = typer.Typer(help="Show MIG profiles and the MIG devices of nodes, and partition GPUs.", no_args_is_help=True)


@mig.command()
def profiles(
    card: Annotated[str, typer.Argument(help="Only list cards whose name contains this, such as A100-40GB.")] = "",
) -> None:
    """List the MIG profiles of each card with their placements. Placement uses the same table."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.model.mig_cards import MIG_CARDS

    chosen = [mig_card for name, mig_card in MIG_CARDS.items() if card.casefold() in name.casefold()]
    if not chosen:
        raise BadInput(f"no card matches {card!r}; known cards are {', '.join(MIG_CARDS)}")
    table = Table("CARD", "PROFILE", "ID", "MEMORY", "COMPUTE", "SMS", "MOST", "PLACES", box=None, pad_edge=False)
    for mig_card in chosen:
        for profile in mig_card.profiles:
            table.add_row(
                mig_card.model,
                profile.name,
                str(profile.id),
                "" if profile.memory_mib is None else f"{profile.memory_mib} MiB",
                f"{profile.slices}/{mig_card.profiles[-1].slices}",
                "" if profile.sms is None else str(profile.sms),
                str(mig_card.most(profile)),
                f"{','.join(map(str, profile.starts))}:{profile.size}",
            )
    print_table(console, table)


@mig.command("list")
def list_nodes(
    selector: Selector = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    watch: Watch = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List nodes with MIG devices or a requested MIG configuration: its state and the devices."""
    from lamina.cli.lists import ListForm, ListKind, ListReading, list_objects
    from lamina.operations.mig import MigNode, mig_nodes
    from lamina.ports.kube.selectors import label_selector

    selected = label_selector(selector) if selector else None
    kind = ListKind(
        row=MigNode,
        table=lambda rows, wide: _table(rows),
        name=lambda row: f"node/{row.name}",
        title=lambda row: f"node {row.name}",
        empty=f"No node {'with these labels ' if selector else ''}has MIG devices or a requested MIG configuration.",
    )

    async def read(kube: "Kube") -> "ListReading[MigNode]":
        return ListReading(await mig_nodes(kube, selected))

    list_objects(kind, ListForm(output, sort_by, not no_headers, watch), kubeconfig, read)


def _table(rows: "Sequence[MigNode]") -> "Table":
    from rich.table import Table

    table = Table("NODE", "CONFIGURATION", "STATE", "DEVICES", box=None, pad_edge=False)
    for node in rows:
        table.add_row(node.name, node.configuration, node.state, ", ".join(node.devices))
    return table


@mig.command()
def apply(
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    configuration: Annotated[
        str, typer.Argument(help="Name in mig-parted's file, or a standard one such as all-balanced.")
    ],
    kubeconfig: Kubeconfig = None,
) -> None:
    """Request a MIG configuration for a node. Its agent partitions the GPUs once they are not in use."""
    from lamina.cli.connection import with_cluster
    from lamina.operations.mig import request_configuration

    with_cluster(kubeconfig, lambda kube: request_configuration(kube, node, configuration))
    typer.echo(f"Requested {configuration} for node {node}; `lamina mig list` shows its state.")
