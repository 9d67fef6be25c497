"""`lamina advise defrag`: which pods could be moved so that GPUs become idle. It only tells."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.view import Kubeconfig

if TYPE_CHECKING:
    from lamina.cli.cluster import Cluster
    from lamina.placement.defrag import Resident

advise = typer.Typer(no_args_is_help=True, help="Say what a person could do; nothing is done.")


@advise.callback()
def _advice() -> None:
    """Without a callback the one command would lose its name."""


@advise.command("defrag")
def defrag(
    moves: Annotated[int, typer.Option("--moves", min=1, help="How many pods may move at most.")] = 20,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Say which pods to move so that GPUs become idle."""
    from lamina.cli.terminal import console

    cluster = asyncio.run(_read(kubeconfig))
    for line in lines(cluster, moves):
        console.print(line, markup=False, soft_wrap=True)


def lines(cluster: "Cluster", moves: int) -> Iterator[str]:
    """The advice in sentences."""
    from lamina.placement.defrag import advise as advice

    nodes = {name: inventory.gpus for name, inventory in cluster.inventories.items()}
    index = {gpu.uuid: gpu.index for gpus in nodes.values() for gpu in gpus}
    steps = advice(nodes, list(_residents(cluster)), most_moves=moves)
    for step in steps:
        yield f"GPU {index[step.frees]} of node {step.node} becomes idle when these move:"
        for move in step.moves:
            start, end = (", ".join(str(index[gpu]) for gpu in gpus) for gpus in (move.from_gpus, move.to_gpus))
            yield f"  {move.pod}: from GPU {start} of {move.from_node} to GPU {end} of {move.to_node}"
    total = sum(len(step.moves) for step in steps)
    yield f"{len(steps)} GPUs become idle by {total} moves." if steps else "No GPU can be freed by moving pods."


def _residents(cluster: "Cluster") -> Iterator["Resident"]:
    """Who holds GPUs. A pod that nothing would make anew, or that is ending, is not to be moved."""
    from lamina.dialects import parse
    from lamina.errors import BadInput
    from lamina.model.ledger import taken_by
    from lamina.placement.defrag import Resident

    for pod in cluster.pods:
        meta = pod["metadata"]
        grant = cluster.grants.get(meta["uid"])
        if grant is None or cluster.ledger.pod(meta["uid"]).over:
            continue
        try:
            request = parse(pod, cluster.config)
        except BadInput:
            request = None
        if request is not None:
            owned = any(each.get("controller") for each in meta.get("ownerReferences") or ())
            movable = owned and not meta.get("deletionTimestamp")
            name = f"{meta['namespace']}/{meta['name']}"
            yield Resident(name, request, grant.node, taken_by(grant.containers), movable)


async def _read(kubeconfig: Path | None) -> "Cluster":
    from lamina.cli import cluster
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        return await cluster.read(kube)
    finally:
        await kube.close()
