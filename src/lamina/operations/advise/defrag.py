"""`lamina advise defrag`: which pods to move so that GPUs become idle. Nothing is moved."""

from collections.abc import Iterator

from msgspec import Struct

from lamina.defragmentation.plan import plan
from lamina.report.cluster_view import ClusterView

NO_MOVE = "No GPU can be freed by moving pods."


def advice(cluster: ClusterView, max_moves: int) -> Iterator[str]:
    """The lines to print: each step with its moves, then the sum."""
    index = {gpu.uuid: gpu.index for inventory in cluster.inventories.values() for gpu in inventory.gpus}
    steps = list(plan(cluster, max_moves))
    for step in steps:
        yield f"GPU {index[step.frees]} of node {step.node} becomes idle after these moves:"
        for move in step.moves:
            start, end = (", ".join(str(index[gpu]) for gpu in gpus) for gpus in (move.from_gpus, move.to_gpus))
            yield f"  {move.pod}: from GPU {start} of {move.from_node} to GPU {end} of {move.to_node}"
    if not steps:
        yield NO_MOVE
        return
    moves = sum(len(step.moves) for step in steps)
    gpus = "1 GPU becomes" if len(steps) == 1 else f"{len(steps)} GPUs become"
    yield f"{gpus} idle after {moves} move{'s' if moves != 1 else ''}."


class MoveRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """One pod to move, in its order. GPUs are indices on their nodes."""

    pod: str
    from_node: str
    from_gpus: tuple[int, ...]
    to_node: str
    to_gpus: tuple[int, ...]
    frees_node: str
    frees_gpu: int
    """What becomes idle once all moves for it are done."""


def move_rows(cluster: ClusterView, max_moves: int) -> list[MoveRow]:
    """The moves of all steps."""
    index = {gpu.uuid: gpu.index for inventory in cluster.inventories.values() for gpu in inventory.gpus}
    return [
        MoveRow(
            pod=move.pod,
            from_node=move.from_node,
            from_gpus=tuple(index[gpu] for gpu in move.from_gpus),
            to_node=move.to_node,
            to_gpus=tuple(index[gpu] for gpu in move.to_gpus),
            frees_node=step.node,
            frees_gpu=index[step.frees],
        )
        for step in plan(cluster, max_moves)
        for move in step.moves
    ]
