"""The cluster as it might be: other nodes, other numbers of shares, other scaling, whole GPUs only, without MIG.

Replays know shares and whole GPUs alone, so what has to do with MIG is left out and reported.
"""

import fnmatch
from collections.abc import Sequence
from decimal import Decimal

import msgspec
from msgspec import structs

from lamina.core.cards import card
from lamina.core.gpus import Gpu, Mode
from lamina.errors import BadInput
from lamina.simulation.workload import SimNode, SimPod

_CPU_PER_GPU, _MEMORY_PER_GPU = 16_000, 131_072
"""Of added nodes: 16 cores and 128 GiB for each GPU, and no less than for one."""


def added(written: str, before: Sequence[SimNode]) -> list[SimNode]:
    """The nodes that `N:MODEL:GPUS` asks for, such as `4:A100-SXM4-80GB:8`. Raises BadInput."""
    number, _, rest = written.partition(":")
    model, _, count = rest.rpartition(":")
    if not (number.isdigit() and count.isdigit() and model and 1 <= int(count) <= 64):
        raise BadInput(f"--add-nodes must be N:MODEL:GPUS, such as 4:A100-SXM4-80GB:8, got {written!r}")
    known, taken = card(model), {node.name for node in before}
    names = [f"added-{known.key.lower()}-{place}" for place in range(len(taken) + int(number))]
    free = [name for name in names if name not in taken][: int(number)]
    return [
        SimNode(
            name=name,
            cpu=_CPU_PER_GPU * int(count),
            memory_mib=_MEMORY_PER_GPU * int(count),
            gpus=tuple(
                Gpu(
                    uuid=f"{name}-{i}", index=i, model=known.name,
                    memory_mib=known.memory_mib, capacity_mib=known.memory_mib,
                )
                for i in range(int(count))
            ),
        )
        for name in free
    ]  # fmt: skip


def without(nodes: Sequence[SimNode], pattern: str) -> list[SimNode]:
    """The nodes whose names do not match, `*` standing for anything. Raises BadInput where none matches."""
    left = [node for node in nodes if not fnmatch.fnmatchcase(node.name, pattern)]
    if len(left) == len(nodes):
        raise BadInput(f"--remove-nodes {pattern!r} matches none of {len(nodes)} nodes")
    return left


def shared(
    nodes: Sequence[SimNode], *, slots: int | None, memory_scaling: float | None, core_scaling: float | None
) -> list[SimNode]:
    """The nodes with other settings of sharing; None leaves them as they are."""

    def changed(gpu: Gpu) -> Gpu:
        if slots is not None:
            gpu = msgspec.structs.replace(gpu, slots=slots)
        if memory_scaling is not None:
            gpu = msgspec.structs.replace(gpu, capacity_mib=int(gpu.memory_mib * Decimal(str(memory_scaling))))
        if core_scaling is not None:
            gpu = msgspec.structs.replace(gpu, cores_capacity=int(100 * Decimal(str(core_scaling))))
        return gpu

    return [msgspec.structs.replace(node, gpus=tuple(map(changed, node.gpus))) for node in nodes]


def whole(pods: Sequence[SimPod]) -> list[SimPod]:
    """The pods as if GPUs could not be shared: a request for a part gets a whole one."""

    def changed(pod: SimPod) -> SimPod:
        if pod.request is None:
            return pod
        containers = tuple(
            msgspec.structs.replace(each, memory_mib=None, memory_percent=100, cores=100, exclusive=True)
            for each in pod.request.containers
        )
        return msgspec.structs.replace(pod, request=msgspec.structs.replace(pod.request, containers=containers))

    return [changed(pod) for pod in pods]


_MAX_NAMED = 3


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
        more = ", ..." if len(left) > _MAX_NAMED else ""
        left_out.append(
            f"{len(left)} pods are left out, since they ask for MIG; replays know no MIG: "
            f"{', '.join(left[:_MAX_NAMED])}{more}"
        )
    return kept, others, left_out


def _only_by_mig(gpu: Gpu) -> bool:
    return set(gpu.modes) == {Mode.MIG}


def _not_by_mig(gpu: Gpu) -> Gpu:
    return structs.replace(gpu, modes=tuple(mode for mode in gpu.modes if mode is not Mode.MIG))


def _needs_mig(pod: SimPod) -> bool:
    return pod.mig_devices or (pod.request is not None and set(pod.request.selector.modes) == {Mode.MIG})
