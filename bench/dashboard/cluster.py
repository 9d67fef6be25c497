"""A document of many nodes with eight GPUs, two pods on each GPU, and many pods that wait."""

from functools import cache

from lamina.operations.dashboard.document import (
    ClusterDocument,
    ClusterFigures,
    GpuCard,
    GpuPart,
    NodeCard,
    PodCard,
    ShareCard,
)

GPUS, SHARES, WAITING, REASONS = 8, 2, 4_000, 5
STEP_MIB = 256
"""By how much a GPU changes: by more than a digit that the page shows, also in one of its shares."""


def cluster(nodes: int, generation: int = 0, *, changed: int, waiting: int) -> ClusterDocument:
    """More is granted of the first GPU of `changed` nodes, the first ones, with each generation."""
    cards: dict[str, NodeCard] = {}
    pods: dict[str, PodCard] = {}
    for number in range(nodes):
        name = f"node-{number}"
        gpus = [_gpu(number, index, generation if number < changed and not index else 0) for index in range(GPUS)]
        cards[name] = NodeCard(name=name, driver="580.65.06", gpus=tuple(gpus))
        pods |= {part.pod: _running(name, gpu.uuid, gpu.index, part) for gpu in gpus for part in gpu.parts}
    pods |= {f"w{number}": _waiting(number) for number in range(waiting)}
    granted = sum(gpu.taken_mib for card in cards.values() for gpu in card.gpus)
    figures = ClusterFigures(
        nodes=nodes, gpus=GPUS * nodes, waiting_pods=waiting, running_pods=SHARES * GPUS * nodes,
        # Of one GPU, so that a change of one can be seen in it.
        memory_mib=16_000, granted_mib=granted - 8000 * (GPUS * nodes - 1),
    )  # fmt: skip
    return ClusterDocument(cluster=figures, nodes=cards, pods=pods)


def _gpu(node: int, index: int, generation: int) -> GpuCard:
    parts = tuple(
        GpuPart(
            pod=f"{node}-{index}-{share}",
            name=f"team-{share}/pod-{node}-{index}-{share}",
            namespace=f"team-{share}",
            memory_mib=4000 + STEP_MIB * generation // SHARES,
            cores=25,
        )
        for share in range(SHARES)
    )
    return GpuCard(
        uuid=f"GPU-{node}-{index}", index=index, model="Tesla T4", memory_mib=16000, capacity_mib=16000,
        cores_capacity=100, slots=10, mode="quota", taken_mib=8000 + STEP_MIB * generation, taken_cores=50,
        taken_slots=2, parts=parts,
    )  # fmt: skip


@cache
def _running(node: str, gpu: str, index: int, part: GpuPart) -> PodCard:
    """A pod on a node keeps its card while nothing changes in it, as in the product."""
    share = ShareCard(
        container="main", node=node, gpu=gpu, index=index, mode="quota", memory_mib=part.memory_mib,
        most_mib=part.memory_mib, physical_mib=part.memory_mib, cores=part.cores,
    )  # fmt: skip
    return PodCard(
        namespace=part.namespace, name=part.name.removeprefix(f"{part.namespace}/"), state="running", phase="Running",
        node=node, shares=(share,),
    )  # fmt: skip


def _waiting(number: int) -> PodCard:
    needs = 99_000 + number % REASONS
    reason = f"1000 nodes: needs {needs} MiB; the largest GPU has 16000 MiB"
    return PodCard(
        namespace="team", name=f"waits-{number}", state="pending", phase="Pending", reason=reason,
        why=(f"waits-{number} is pending: {reason}",), ways_out=("Request at most 16000 MiB, on node node-0.",),
    )  # fmt: skip
