"""A node that does not fit, and the sentence that says why in numbers.

GPUs are grouped by the first rule that refused them. The nearest group comes first, and every number in a sentence is
the best of its own group, so each sentence is true as it stands.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from lamina.model.requests import ContainerRequest, Wishes
from lamina.placement.causes import Cause
from lamina.placement.nodes import GpuState, NodeState

_UNITS = {Cause.SIZE: "MiB", Cause.MEMORY: "MiB", Cause.CORES: "%", Cause.COUNT: "GPUs"}


class Numbers(NamedTuple):
    """What was needed and the most that was there; `unit` is MiB, %, GPUs or slots."""

    needed: int
    available: int
    unit: str


class Misfit(Struct, frozen=True):
    """Why a pod does not fit on a node. `refusals` has one entry per GPU of the node, None where the GPU would do."""

    node: NodeState
    container: ContainerRequest
    wishes: Wishes
    refusals: tuple[Cause | None, ...]
    containers: tuple[ContainerRequest, ...]
    """All GPU containers of the pod; `container` is the first of them that finds no place."""
    together: bool = False
    """Each container would fit alone, but not all of them."""

    @property
    def fitting(self) -> int:
        """How many GPUs of the node would take a share of the container."""
        return self.refusals.count(None)

    @property
    def cause(self) -> Cause:
        """The nearest cause: the one to mend first."""
        if self.together:
            return Cause.TOGETHER
        if not self.refusals:
            return Cause.NO_GPU
        if self.container.count > len(self.refusals):
            return Cause.COUNT
        return max(cause for cause in self.refusals if cause is not None)

    @property
    def lasting(self) -> bool:
        """Whether the pod would not fit even if every other pod left the node."""
        able = sum(1 for cause in self.refusals if cause is None or not cause.lasting)
        return not self.together and able < self.container.count

    @property
    def numbers(self) -> Numbers:
        """Needed and available in the unit of the cause."""
        cause = self.cause
        if cause is Cause.COUNT:
            return Numbers(self.container.count, len(self.refusals), "GPUs")
        group = [state for state, refused in zip(self.node.gpus, self.refusals, strict=True) if refused is cause]
        return _numbers(cause, self.container, group)

    @property
    def reason(self) -> str:
        """One sentence with numbers, without the node's name, so that equal nodes have equal reasons."""
        several = len(self.containers) > 1
        if self.together:
            return self._not_together()
        prefix = f"container {self.container.container}: " if several else ""
        if not self.refusals:
            return f"{prefix}no GPU is offered on this node"
        if self.container.count > len(self.refusals):
            return f"{prefix}needs {self.container.count} GPUs; this node has {len(self.refusals)}"
        if self.fitting:
            prefix += f"needs {self.container.count} GPUs; {self.fitting} fits; on " if self.fitting == 1 else (
                f"needs {self.container.count} GPUs; {self.fitting} fit; on "
            )
            return prefix + self._groups(always_counted=True).removeprefix("on ")
        return prefix + self._groups(always_counted=False)

    def _groups(self, *, always_counted: bool) -> str:
        total = len(self.refusals)
        groups: dict[Cause, list[GpuState]] = {}
        for state, cause in zip(self.node.gpus, self.refusals, strict=True):
            if cause is not None:
                groups.setdefault(cause, []).append(state)
        if len(groups) == 1 and not always_counted:
            (cause, group), = groups.items()
            return _sentence(cause, self.container, self.wishes, group)
        return "; ".join(
            f"on {len(group)} of {total} GPUs: {_sentence(cause, self.container, self.wishes, group)}"
            for cause, group in sorted(groups.items(), reverse=True)
        )

    def _not_together(self) -> str:
        free = ", ".join(str(state.free_memory) for state in self.node.gpus)
        needs = ", ".join(f"{c.container} {_need(c)}" for c in self.containers)
        return f"its containers fit one by one but not together ({needs}); free are {free} MiB"


def _need(container: ContainerRequest) -> str:
    memory = f"{container.memory_mib} MiB" if container.memory_mib is not None else f"{container.memory_percent} %"
    cores = f" and {container.cores} % of the time" if container.cores else ""
    return f"{container.count} x {memory}{cores}" if container.count > 1 else f"{memory}{cores}"


def _numbers(cause: Cause, container: ContainerRequest, group: Sequence[GpuState]) -> Numbers:
    """The numbers of the GPU of `group` that misses by the least."""
    if not group:
        return Numbers(container.count, 0, "GPUs")
    if cause is Cause.CORES or (cause is Cause.SIZE and _lacks_cores(container, group)):
        free = [s.gpu.cores_capacity if cause is Cause.SIZE else s.free_cores for s in group]
        return Numbers(container.cores, max(free), "%")
    if cause in (Cause.MEMORY, Cause.SIZE):
        pairs = [
            (container.memory_on(s.gpu.capacity_mib), s.gpu.capacity_mib if cause is Cause.SIZE else s.free_memory)
            for s in group
        ]
        return Numbers(*min(pairs, key=lambda pair: pair[0] - pair[1]), "MiB")
    if cause is Cause.SLOTS:
        return Numbers(1, 0, "slots")
    return Numbers(container.count, 0, "GPUs")


def _lacks_cores(container: ContainerRequest, group: Sequence[GpuState]) -> bool:
    return all(container.memory_on(s.gpu.capacity_mib) <= s.gpu.capacity_mib for s in group)


def _sentence(cause: Cause, container: ContainerRequest, wishes: Wishes, group: Sequence[GpuState]) -> str:
    """What is missing on these GPUs, all of which refused for `cause`."""
    numbers = _numbers(cause, container, group)
    many = len(group) > 1
    match cause:
        case Cause.UNHEALTHY:
            reasons = ", ".join(sorted({state.gpu.reason for state in group if state.gpu.reason}))
            return f"no healthy GPU ({reasons})" if reasons else "no healthy GPU"
        case Cause.TYPE:
            models = ", ".join(sorted({state.gpu.model for state in group}))
            wanted = f"of type {' or '.join(wishes.types)}" if wishes.types else ""
            refused = f"not of type {' or '.join(wishes.not_types)}" if wishes.not_types else ""
            return f"no GPU {' and '.join(filter(None, (wanted, refused)))}; this node has {models}"
        case Cause.UUID:
            if wishes.uuids:
                return f"none of the GPUs it names ({', '.join(wishes.uuids)})"
            return "only GPUs that it excludes by UUID"
        case Cause.SIZE if numbers.unit == "%":
            return f"needs {numbers.needed} % of a GPU's time; at most {numbers.available} % can be granted"
        case Cause.SIZE:
            return f"needs {numbers.needed} MiB; the largest GPU has {numbers.available} MiB"
        case Cause.HELD:
            return f"all {len(group)} GPUs are held whole by other pods" if many else "held whole by another pod"
        case Cause.NOT_IDLE:
            return f"whole GPU needed; none of {len(group)} is idle" if many else "whole GPU needed; it is not idle"
        case Cause.SLOTS:
            return _slots(group)
        case Cause.MEMORY:
            return f"needs {numbers.needed} MiB; the best GPU has {numbers.available} MiB free"
        case Cause.CORES:
            return f"needs {numbers.needed} % of a GPU's time; the most free is {numbers.available} %"
        case _:
            return "all of the time is granted to others, and a share without cores would get none"


def _slots(group: Sequence[GpuState]) -> str:
    slots = {state.gpu.slots for state in group}
    each = " of each GPU" if len(group) > 1 else ""
    if len(slots) == 1:
        return f"all {slots.pop()} slots{each} are taken"
    return f"all {sum(state.gpu.slots for state in group)} slots of {len(group)} GPUs are taken"
