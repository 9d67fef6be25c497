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
    if cause is Cause.PROFILE:
        return _largest(container, group)
    if cause is Cause.PLACE:
        return Numbers(1, 0, "places")
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
        case Cause.NOT_ALLOWED:
            return _not_allowed(wishes, group)
        case Cause.PROFILE:
            return _profile(container, group)
        case Cause.OTHER_MODE:
            return _other_mode(group)
        case Cause.PLACE:
            return _place(container, group)
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


def _not_allowed(wishes: Wishes, group: Sequence[GpuState]) -> str:
    there = sorted({mode.value for state in group for mode in state.modes}) or ["no mode that can be brought about"]
    return f"the pod accepts the mode {' or '.join(sorted(wishes.modes))}; this node allows {', '.join(there)}"


def _other_mode(group: Sequence[GpuState]) -> str:
    """Who keeps the GPUs from the mode in which they would hold the request."""
    modes = sorted({state.kept.value for state in group if state.kept is not None})
    many = len(group) > 1
    gpu, end = ("each GPU", "one of them is idle") if many else ("the GPU", "it is idle")
    return f"pods keep {gpu} in the mode {', '.join(modes)}; another mode is possible when {end}"


def _largest(container: ContainerRequest, group: Sequence[GpuState]) -> Numbers:
    """What the request needs and what the largest profile has; in memory where that is what it lacks."""
    cuts = [state.room.cut for state in group if state.room is not None]
    memory = max(profile.holds_mib for cut in cuts for profile in cut.profiles)
    if container.memory_mib is not None and container.memory_mib > memory:
        return Numbers(container.memory_mib, memory, "MiB")
    cores = max(cut.card.cores(profile) for cut in cuts for profile in cut.profiles)
    if container.cores > cores:
        return Numbers(container.cores, cores, "%")
    slices = max(100 * profile.size // cut.card.slices for cut in cuts for profile in cut.profiles)
    return Numbers(100 if container.exclusive else container.memory_percent or 0, slices, "% of the GPU")


def _profile(container: ContainerRequest, group: Sequence[GpuState]) -> str:
    needed, there, unit = _largest(container, group)
    largest = sorted({state.room.cut.profiles[-1].name for state in group if state.room is not None})
    return f"needs {needed} {unit}; the largest MIG profile, {' or '.join(largest)}, has {there} {unit}"


def _place(container: ContainerRequest, group: Sequence[GpuState]) -> str:
    cuts = {state.room.cut for state in group if state.room is not None}
    names = sorted({cut.smallest(cut.holding(container)).name for cut in cuts})
    where = f"any of {len(group)} GPUs" if len(group) > 1 else "the GPU"
    return f"no place on {where} for a MIG instance of {' or '.join(names)}, or a larger one, beside those in use"


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
