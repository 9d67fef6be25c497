"""The sentences of a misfit: for each cause, what is missing on a group of GPUs, in numbers that hold for the group."""

from collections.abc import Sequence
from typing import NamedTuple

from lamina.model.requests import ContainerRequest, Wishes
from lamina.placement.causes import Cause
from lamina.placement.nodes import GpuState


class Numbers(NamedTuple):
    """What was needed and the most that was there; `unit` is MiB, %, GPUs or slots."""

    needed: int
    available: int
    unit: str


def numbers(cause: Cause, container: ContainerRequest, group: Sequence[GpuState]) -> Numbers:
    """The numbers of that GPU of `group`, all refused for `cause`, which misses by the least."""
    if cause is Cause.SIZE:
        pairs = [(container.memory_on(s.gpu.capacity_mib), s.gpu.capacity_mib) for s in group]
        if all(needed <= there for needed, there in pairs):
            return Numbers(container.cores, max(s.gpu.cores_capacity for s in group), "%")
        return Numbers(*min(pairs, key=lambda pair: pair[0] - pair[1]), "MiB")
    if cause is Cause.MEMORY:
        pairs = [(container.memory_on(s.gpu.capacity_mib), s.free_memory) for s in group]
        return Numbers(*min(pairs, key=lambda pair: pair[0] - pair[1]), "MiB")
    if cause is Cause.CORES:
        return Numbers(container.cores, max(s.free_cores for s in group), "%")
    if cause is Cause.SLOTS:
        return Numbers(1, 0, "slots")
    return Numbers(container.count, 0, "GPUs")


def sentence(
    cause: Cause, container: ContainerRequest, wishes: Wishes, group: Sequence[GpuState], *, all_of_node: bool
) -> str:
    """What is missing on these GPUs. `all_of_node` tells that the node has no others."""
    needed, there, unit = numbers(cause, container, group)
    many = len(group) > 1
    best = "the best GPU has" if all_of_node else "the best of them has"
    match cause:
        case Cause.UNHEALTHY:
            reasons = ", ".join(sorted({state.gpu.reason for state in group if state.gpu.reason}))
            return f"no healthy GPU ({reasons})" if reasons else "no healthy GPU"
        case Cause.CORDONED:
            return f"all {len(group)} GPUs are cordoned" if many else "the GPU is cordoned"
        case Cause.MODE:
            return _mode(group)
        case Cause.TYPE:
            return _type(wishes, group, "this node has" if all_of_node else "these are")
        case Cause.UUID if wishes.uuids:
            return f"not among the GPUs that the pod names ({', '.join(wishes.uuids)})"
        case Cause.UUID:
            return "excluded by the pod's list of UUIDs"
        case Cause.SIZE if unit == "%":
            return f"needs {needed} % of a GPU's time; at most {there} % can be granted"
        case Cause.SIZE:
            return f"needs {needed} MiB; {best.replace('best', 'largest')} {there} MiB"
        case Cause.HELD:
            return f"all {len(group)} GPUs are held whole by others" if many else "the GPU is held whole by another pod"
        case Cause.NOT_IDLE if wishes.idle and not container.exclusive:
            return f"idle GPU needed; none of {len(group)} is idle" if many else "idle GPU needed; it is not idle"
        case Cause.NOT_IDLE:
            return f"whole GPU needed; none of {len(group)} is idle" if many else "whole GPU needed; it is not idle"
        case Cause.ISOLATION:
            there_is = "without" if container.cores else "with"
            return f"{'each GPU is' if many else 'the GPU is'} shared by containers {there_is} a share of its time"
        case Cause.SLOTS:
            return _slots(container, group)
        case Cause.MEMORY:
            return f"needs {needed} MiB; {best} {there} MiB free"
        case Cause.CORES:
            return f"needs {needed} % of a GPU's time; the most free is {there} %"
        case _:
            return "all of the time is granted, and a share without cores would get none"


def _mode(group: Sequence[GpuState]) -> str:
    """How the GPUs are given out instead, or who keeps them from being shared."""
    plain = sorted({state.gpu.plain for state in group if state.gpu.plain})
    if plain:
        return f"this node gives its GPUs out as {', '.join(plain)} alone, without shares of memory or compute"
    modes = sorted({state.gpu.mode.value for state in group if state.gpu.mode is not None})
    return f"pods are on the GPU that use it by {', '.join(modes)}; it can be shared when they have ended"


def _type(wishes: Wishes, group: Sequence[GpuState], has: str) -> str:
    wanted = f" of type {' or '.join(wishes.types)}" if wishes.types else ""
    excluded = f" outside the excluded type {' or '.join(wishes.not_types)}" if wishes.not_types else ""
    models = ", ".join(sorted({state.gpu.model for state in group}))
    return f"no GPU{wanted}{excluded}; {has} {models}"


def _slots(container: ContainerRequest, group: Sequence[GpuState]) -> str:
    if container.sharing.most is not None:
        return (
            f"{'each GPU is' if len(group) > 1 else 'the GPU is'} shared by {container.sharing.most} containers already"
        )
    slots = {state.gpu.slots for state in group}
    if len(slots) > 1:
        return f"all {sum(state.gpu.slots for state in group)} slots of {len(group)} GPUs are taken"
    return f"all {slots.pop()} slots{' of each GPU' if len(group) > 1 else ''} are taken"
