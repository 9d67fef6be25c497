"""A node that does not fit, and the sentence that says why in numbers.

GPUs are grouped by the first rule that refused them. The nearest group comes first, and every number in a sentence is
the best of its own group, so each sentence is true as it stands.
"""

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from lamina.core.requests import ContainerRequest, GpuSelector
from lamina.placement.explanation.sentences import Numbers, RefusedGpus, numbers, numbers_of_quota, sentence
from lamina.placement.rules.refusal import Cause
from lamina.placement.state.modes import MODES
from lamina.placement.state.nodes import GpuState, NodeState


class Misfit(Struct, frozen=True):
    """Why a pod does not fit on a node. `refusals` has one entry per GPU of the node, None where the GPU would do."""

    node: NodeState
    container: ContainerRequest
    selector: GpuSelector
    refusals: tuple[Cause | None, ...]
    containers: tuple[ContainerRequest, ...]
    """All GPU containers of the pod; `container` is the first of them that finds no place."""
    together: bool = False
    """Each container would fit alone, but not all of them."""
    apart: bool = False
    """Enough GPUs fit, but not enough on one NUMA node."""
    mixed: bool = False
    """Enough GPUs fit, but not enough in one mode."""
    beyond: tuple[int, int] | None = None
    """The MiB and percent that the pod would come to, which fits but exceeds a quota."""

    @property
    def fitting(self) -> int:
        """How many GPUs of the node would take a share of the container."""
        return self.refusals.count(None)

    @property
    def cause(self) -> Cause:
        """The nearest cause: the one to fix first."""
        if self.beyond is not None:
            return Cause.QUOTA
        if self.together:
            return Cause.TOGETHER
        if self.apart:
            return Cause.APART
        if self.mixed:
            return Cause.MIXED
        if not self.refusals:
            return Cause.NO_GPU
        if self.container.count > len(self.refusals):
            return Cause.COUNT
        return max(cause for cause in self.refusals if cause is not None)

    @property
    def lasting(self) -> bool:
        """Whether the pod would not fit even if every other pod left the node."""
        if self.beyond is not None:
            return True
        able = sum(1 for cause in self.refusals if cause is None or not cause.lasting)
        if self.apart:
            able = max(self._by_numa(lambda cause: cause is None or not cause.lasting).values())
        if self.mixed:
            able = max(sum(mode in state.modes for state in self.node.gpus) for mode in MODES)
        return not self.together and able < self.container.count

    @property
    def numbers(self) -> Numbers:
        """Needed and available in the unit of the cause, from the GPU that misses by the least."""
        if self.beyond is not None and self.container.room is not None:
            return numbers_of_quota(self.container.room, self.beyond)
        if self.cause in (Cause.NO_GPU, Cause.COUNT, Cause.APART, Cause.MIXED, Cause.TOGETHER):
            return Numbers(self.container.count, len(self.refusals), "GPUs")
        return numbers(self.cause, self.container, self._groups()[self.cause])

    @property
    def reason(self) -> str:
        """One sentence with numbers, without the node's name, so that equal nodes have equal reasons."""
        if self.beyond is not None and self.container.room is not None:
            return self.container.room.excess(*self.beyond)
        if self.together:
            return self._not_together()
        asked, there = self.container.count, len(self.refusals)
        prefix = f"container {self.container.container}: " if len(self.containers) > 1 else ""
        if there == 0:
            return f"{prefix}no GPU is offered on this node"
        if asked > there:
            return f"{prefix}needs {asked} GPUs; this node has {there}"
        if self.apart:
            most = max(self._by_numa(lambda cause: cause is None).values())
            return f"{prefix}needs {asked} GPUs on one NUMA node; at most {most} fit on one"
        if self.mixed:
            return f"{prefix}needs {asked} GPUs in one mode; {self.fitting} fit, but not all in the same"
        if self.fitting:
            prefix += f"needs {asked} GPUs; {self.fitting} {'fits' if self.fitting == 1 else 'fit'}; "
        groups = self._groups()
        if len(groups) == 1 and not self.fitting:
            [(cause, group)] = groups.items()
            return prefix + sentence(RefusedGpus(cause, self.container, self.selector, group, all_of_node=True))
        return prefix + "; ".join(
            f"on {len(groups[cause])} of {there} GPUs: "
            + sentence(RefusedGpus(cause, self.container, self.selector, groups[cause], all_of_node=False))
            for cause in sorted(groups, reverse=True)
        )

    def _by_numa(self, counts: Callable[[Cause | None], bool]) -> Counter[int | None]:
        """How many GPUs with such a refusal are on each NUMA node."""
        pairs = zip(self.node.gpus, self.refusals, strict=True)
        known = Counter(state.gpu.numa for state, cause in pairs if counts(cause))
        if known.pop(None, 0):
            known[None] = 1
        return known

    def _groups(self) -> dict[Cause, list[GpuState]]:
        groups: dict[Cause, list[GpuState]] = {}
        for state, cause in zip(self.node.gpus, self.refusals, strict=True):
            if cause is not None:
                groups.setdefault(cause, []).append(state)
        return groups

    def _not_together(self) -> str:
        able = [state for state, cause in zip(self.node.gpus, self.refusals, strict=True) if cause is None]
        free = ", ".join(f"{state.free_memory} MiB and {state.free_cores} %" for state in able)
        needs = ", ".join(_need(container) for container in self.containers)
        return f"its containers fit one by one but not together ({needs}); free: {free}"


def _need(container: ContainerRequest) -> str:
    memory = f"{container.memory_mib} MiB" if container.memory_mib is not None else f"{container.memory_percent} %"
    times = f"{container.count} x " if container.count > 1 else ""
    cores = f" and {container.cores} % of the time" if container.cores else ""
    return f"{container.container} {times}{memory}{cores}"
