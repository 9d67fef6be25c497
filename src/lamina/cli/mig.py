"""`lamina mig`: MIG profiles of cards, MIG devices of nodes, and applying a configuration."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, NoHeaders, Output, Selector, SortBy, Watch

if TYPE_CHECKING:
    from lamina.cli.lists import ListReading
    from lamina.operations.mig import MigNode
    from lamina.ports.kube import Kube

mig = typer.Typer(help="Show MIG profiles and the MIG devices of nodes, and partition GPUs.", no_args_is_help=True)


@mig.command()
def profiles(
    card: Annotated[str, typer.Argument(help="Only list cards whose name contains this, such as A100-40GB.")] = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
) -> None:
    """List the MIG profiles of each card with their placements. Placement uses the same table."""
    from lamina.cli.lists import ListForm, ListKind, check, print_list
    from lamina.cli.mig_tables import profile_table
    from lamina.operations.mig import ProfileEntry, profile_rows

    kind = ListKind(
        row=ProfileEntry,
        table=lambda rows, wide: profile_table(rows),
        name=lambda row: f"{row.card}/{row.profile}",
        title=lambda row: f"{row.card}/{row.profile}",
        empty="No card has MIG profiles.",
    )
    form = ListForm(output, sort_by, not no_headers)
    check(kind, form)
    print_list(kind, form, profile_rows(card))


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
    from lamina.cli.mig_tables import node_notes, node_table
    from lamina.operations.mig import MigNode, mig_nodes
    from lamina.ports.kube.selectors import label_selector

    selected = label_selector(selector) if selector else None
    kind = ListKind(
        row=MigNode,
        table=lambda rows, wide: node_table(rows),
        name=lambda row: f"node/{row.name}",
        title=lambda row: f"node {row.name}",
        empty=f"No node {'with these labels ' if selector else ''}has MIG devices or a requested MIG configuration.",
        notes=node_notes,
    )

    async def read(kube: "Kube") -> "ListReading[MigNode]":
        return ListReading(await mig_nodes(kube, selected))

    list_objects(kind, ListForm(output, sort_by, not no_headers, watch), kubeconfig, read)


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
