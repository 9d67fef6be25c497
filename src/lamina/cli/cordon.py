"""`lamina cordon gpu` and `lamina uncordon gpu`: give nobody new shares of one GPU; who is on it stays."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.view import Kubeconfig
from lamina.errors import BadInput

if TYPE_CHECKING:
    from lamina.model.gpus import Inventory
    from lamina.ports.kube import Kube

_TRIES = 5

Node = Annotated[str, typer.Argument(help="The node's name.")]
WhichGpu = Annotated[str, typer.Argument(help="The GPU's index on the node, or its UUID.", metavar="GPU")]

cordon = typer.Typer(no_args_is_help=True, help="Give nobody new shares of a GPU; who is on it stays.")
uncordon = typer.Typer(no_args_is_help=True, help="Let a cordoned GPU be shared again.")


@cordon.callback()
@uncordon.callback()
def _only_gpus() -> None:
    """Without a callback the one command would lose its name."""


@cordon.command("gpu")
def cordon_gpu(node: Node, gpu: WhichGpu, kubeconfig: Kubeconfig = None) -> None:
    """Give nobody new shares of one GPU of a node."""
    typer.echo(f"GPU {asyncio.run(_change(kubeconfig, node, gpu, on=True))} of node {node} is cordoned.")


@uncordon.command("gpu")
def uncordon_gpu(node: Node, gpu: WhichGpu, kubeconfig: Kubeconfig = None) -> None:
    """Let a cordoned GPU be shared again."""
    typer.echo(f"GPU {asyncio.run(_change(kubeconfig, node, gpu, on=False))} of node {node} is shared again.")


async def _change(kubeconfig: Path | None, node: str, gpu: str, *, on: bool) -> str:
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        return await change(kube, node, gpu, on=on)
    finally:
        await kube.close()


async def change(kube: "Kube", node: str, gpu: str, *, on: bool) -> str:
    """Cordon the GPU or free it again. Returns its UUID. Raises BadInput where there is no such node or GPU.

    The node's annotation is read and written; where somebody else wrote it meanwhile, both wishes are kept.
    """
    from lamina.control.grant_objects import inventory_of
    from lamina.model.gpus import CORDON, cordoned
    from lamina.ports.kube import INVENTORIES, NODES, Conflict, NotFound

    try:
        uuid = _uuid(inventory_of(await kube.get(INVENTORIES, node)), gpu)
        for attempt in range(_TRIES):
            meta = (await kube.get(NODES, node))["metadata"]
            before = cordoned(meta.get("annotations"))
            wanted = before | {uuid} if on else before - {uuid}
            annotations = {CORDON: ",".join(sorted(wanted)) or None}
            body = {"metadata": {"resourceVersion": meta["resourceVersion"], "annotations": annotations}}
            try:
                await kube.patch(NODES, node, body)
                break
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
    except NotFound as error:
        raise BadInput(f"there is no node {node} that offers GPUs") from error
    return uuid


def _uuid(inventory: "Inventory", gpu: str) -> str:
    for each in inventory.gpus:
        if gpu in (each.uuid, str(each.index)):
            return each.uuid
    known = ", ".join(f"{each.index} ({each.uuid})" for each in inventory.gpus) or "none"
    raise BadInput(f"node {inventory.node} has no GPU {gpu}; it offers {known}")
