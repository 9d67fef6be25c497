"""`lamina mig`: what GPUs can be cut into, what nodes are cut into, and cutting them."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.view import Kubeconfig
from lamina.errors import BadInput

if TYPE_CHECKING:
    from lamina.ports.kube import Object

mig = typer.Typer(help="What GPUs can be cut into by MIG, and what they are cut into.", no_args_is_help=True)


@mig.command()
def profiles(
    card: Annotated[str, typer.Argument(help="Only cards whose name has this in it, such as A100-40GB.")] = "",
) -> None:
    """List the profiles of the cards that can be cut, with their places; the table that placement goes by."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.model.mig_cards import MIG_CARDS

    chosen = [each for name, each in MIG_CARDS.items() if card.casefold() in name.casefold()]
    if not chosen:
        raise BadInput(f"no card is named like {card!r}; there are {', '.join(MIG_CARDS)}")
    table = Table("CARD", "PROFILE", "ID", "MEMORY", "COMPUTE", "SMS", "MOST", "PLACES", box=None, pad_edge=False)
    for each in chosen:
        for profile in each.profiles:
            table.add_row(
                each.model,
                profile.name,
                str(profile.id),
                "" if profile.memory_mib is None else f"{profile.memory_mib} MiB",
                f"{profile.slices}/{each.profiles[-1].slices}",
                "" if profile.sms is None else str(profile.sms),
                str(each.most(profile)),
                f"{','.join(map(str, profile.starts))}:{profile.size}",
            )
    print_table(console, table)


@mig.command("list")
def list_nodes(kubeconfig: Kubeconfig = None) -> None:
    """List the nodes that have MIG devices or are asked to: the configuration, how far it is, and the devices.

    Devices that kubelet gives out are counted; those that were made for pods are there with their places.
    """
    from rich.table import Table

    from lamina.agent.mig.cutter import LABEL, STATE
    from lamina.agent.mig.offering import PREFIX
    from lamina.cli.terminal import console, print_table

    table = Table("NODE", "CONFIGURATION", "STATE", "DEVICES", box=None, pad_edge=False)
    nodes, granted = asyncio.run(_nodes(kubeconfig))
    for node in nodes:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        amounts = (node.get("status") or {}).get("allocatable") or {}
        devices = [f"{count} {name.removeprefix(PREFIX)}" for name, count in amounts.items() if name.startswith(PREFIX)]
        if LABEL in labels or devices or granted.get(name):
            there = ", ".join((*sorted(each for each in devices if not each.startswith("0 ")), *granted.get(name, ())))
            table.add_row(name, labels.get(LABEL, ""), labels.get(STATE, ""), there)
    if table.row_count:
        print_table(console, table)
    else:
        console.print("No node has MIG devices, and none is asked to.")


async def _nodes(kubeconfig: Path | None) -> "tuple[list[Object], dict[str, list[str]]]":
    """The nodes, and the instances on GPUs that grants may cut, by node."""
    from lamina.ports.kube import INVENTORIES, NODES, NotFound
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        nodes = (await kube.list(NODES)).items
        try:
            inventories = (await kube.list(INVENTORIES)).items
        except NotFound:
            inventories = []
        return nodes, {each["metadata"]["name"]: _instances(each["spec"]) for each in inventories}
    finally:
        await kube.close()


def _instances(inventory: "Object") -> list[str]:
    return [
        f"{instance['profile']} at {instance['start']} of GPU {gpu['index']}"
        for gpu in inventory.get("gpus", ())
        for instance in gpu.get("instances", ())
    ]


@mig.command()
def apply(
    node: Annotated[str, typer.Argument(help="The node's name.")],
    configuration: Annotated[
        str, typer.Argument(help="A name of mig-parted's file, or a standard one such as all-balanced.")
    ],
    kubeconfig: Kubeconfig = None,
) -> None:
    """Ask a node to cut its GPUs. Its agent does so as soon as nobody uses what is in the way."""
    asyncio.run(_apply(kubeconfig, node, configuration))
    typer.echo(f"Node {node} is asked for {configuration}; `lamina mig list` says how far it is.")


async def _apply(kubeconfig: Path | None, node: str, configuration: str) -> None:
    from lamina.agent.mig.cutter import LABEL, PENDING, STATE
    from lamina.ports.kube import NODES, NotFound
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        await kube.patch(NODES, node, {"metadata": {"labels": {LABEL: configuration, STATE: PENDING}}})
    except NotFound as missing:
        raise BadInput(f"there is no node {node}") from missing
    finally:
        await kube.close()
