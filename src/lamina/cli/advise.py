"""`lamina advise defrag`: which pods could be moved so that GPUs become idle. It only tells."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.choosing import choose
from lamina.cli.view import Kubeconfig

if TYPE_CHECKING:
    from lamina.cli.cluster import Cluster
    from lamina.model.requests import PodRequest
    from lamina.placement.defrag import Resident
    from lamina.ports.kube import Object

advise = typer.Typer(invoke_without_command=True)
advise.callback()(choose)


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
    if not steps:
        yield "No GPU can be freed by moving pods."
    else:
        yield f"{len(steps)} GPU{'s become' if len(steps) > 1 else ' becomes'} idle by {total} move{'s' * (total > 1)}."


def _residents(cluster: "Cluster") -> Iterator["Resident"]:
    """Who holds GPUs. A pod that nothing would make anew, or that is ending, is not to be moved."""
    from lamina.model.ledger import taken_by
    from lamina.placement.defrag import Resident

    for pod in cluster.pods:
        meta, spec = pod["metadata"], pod["spec"]
        name = f"{meta['namespace']}/{meta['name']}"
        grant = cluster.grants.get(meta["uid"])
        if cluster.ledger.pod(meta["uid"]).over:
            continue
        if grant is None:
            yield from _unrecorded(cluster, pod, name)
            continue
        owned = any(each.get("controller") for each in meta.get("ownerReferences") or ())
        yield Resident(
            name=name,
            request=_request(cluster, pod),
            node=grant.node,
            taken=taken_by(grant.containers),
            movable=owned and not meta.get("deletionTimestamp"),
            elsewhere=not any(spec.get(field) for field in ("nodeSelector", "affinity", "topologySpreadConstraints")),
        )


def _request(cluster: "Cluster", pod: "Object") -> "PodRequest | None":
    from lamina.dialects import parse
    from lamina.errors import BadInput

    try:
        return parse(pod, cluster.config)
    except BadInput:
        return None


def _unrecorded(cluster: "Cluster", pod: "Object", name: str) -> Iterator["Resident"]:
    """A pod that runs without a grant: it counts with the most that it can hold, and stays."""
    from lamina.control.unrecorded import asked_by, most_held
    from lamina.placement.defrag import Resident

    node = pod["spec"].get("nodeName") or ""
    asked, inventory = asked_by(pod, cluster.config), cluster.inventories.get(node)
    if asked is not None and inventory is not None:
        yield Resident(name, None, node, most_held(asked.request, inventory), movable=False)


async def _read(kubeconfig: Path | None) -> "Cluster":
    from lamina.cli import cluster
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        return await cluster.read(kube)
    finally:
        await kube.close()
