"""The cluster without MIG. Replays know shares and whole GPUs alone, so everything else is left out and reported."""

from collections.abc import Sequence

from msgspec import structs

from lamina.core.gpus import Gpu, Mode
from lamina.simulation.workload import SimNode, SimPod

_MOST_NAMED = 3


def without_mig(nodes: Sequence[SimNode], pods: Sequence[SimPod]) -> tuple[list[SimNode], list[SimPod], list[str]]:
    """Nodes without GPUs that are for MIG alone, pods without those that need it, and sentences that say so."""
    kept = [
        structs.replace(node, gpus=tuple(_not_by_mig(gpu) for gpu in node.gpus if not _only_by_mig(gpu)))
        for node in nodes
    ]
    others = [pod for pod in pods if not _needs_mig(pod)]
    left_out = []
    if gone := sum(len(node.gpus) for node in nodes) - sum(len(node.gpus) for node in kept):
        left_out.append(f"{gone} GPUs are left out, since their nodes partition them by MIG; replays know no MIG")
    if left := [pod.name for pod in pods if _needs_mig(pod)]:
        more = ", ..." if len(left) > _MOST_NAMED else ""
        left_out.append(
            f"{len(left)} pods are left out, since they ask for MIG; replays know no MIG: "
            f"{', '.join(left[:_MOST_NAMED])}{more}"
        )
    return kept, others, left_out


def _only_by_mig(gpu: Gpu) -> bool:
    return set(gpu.modes) == {Mode.MIG}


def _not_by_mig(gpu: Gpu) -> Gpu:
    return structs.replace(gpu, modes=tuple(mode for mode in gpu.modes if mode is not Mode.MIG))


def _needs_mig(pod: SimPod) -> bool:
    return pod.mig_devices or (pod.request is not None and set(pod.request.selector.modes) == {Mode.MIG})
