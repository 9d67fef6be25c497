"""`lamina mig`: MIG profiles of cards, MIG devices of nodes, and applying a configuration."""

from typing import Annotated

import typer

from lamina.cli.options import Kubeconfig
from lamina.errors import BadInput

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
def list_nodes(kubeconfig: Kubeconfig = None) -> None:
    """List nodes with MIG devices or a requested MIG configuration: its state and the devices."""
    from rich.table import Table

    from lamina.cli.connection import with_cluster
    from lamina.cli.terminal import console, print_table
    from lamina.operations.mig import mig_nodes

    table = Table("NODE", "CONFIGURATION", "STATE", "DEVICES", box=None, pad_edge=False)
    for node in with_cluster(kubeconfig, mig_nodes):
        table.add_row(node.name, node.configuration, node.state, ", ".join(node.devices))
    if table.row_count:
        print_table(console, table)
    else:
        console.print("No node has MIG devices or a requested MIG configuration.")


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
