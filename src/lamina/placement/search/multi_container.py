"""Placing a pod with several GPU containers: a search over choices in the policy's order, exact within a bound.

Equal choices are tried once: two GPUs with the same free amounts and the same containers of this pod on them lead to
the same end. That keeps the search small on real nodes; the bound is there for made-up ones.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lamina.core.gpus import Mode
from lamina.core.ledger import NOTHING, Taken
from lamina.core.mig import Placed
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement.mig.instances import arrange_instances
from lamina.placement.rules.refusal import held_memory, needs_alone, refusal, slots_for
from lamina.placement.search.gpu_sets import preferred
from lamina.placement.search.policies import gpu_order
from lamina.placement.state.nodes import GpuState, NodeState

_MAX_STEPS = 400
"""Sets of GPUs looked at for one pod on one node. Real pods need a few; three containers on four GPUs at most 258."""


class Seat(NamedTuple):
    """Where a container has a share: the GPU, and the instance where it has one."""

    state: GpuState
    instance: Placed | None = None


def seat(container: ContainerRequest, state: GpuState, mode: Mode) -> Seat:
    """The share of a container that is alone in its pod."""
    partitions = state.partitions if mode is Mode.MIG else None
    return Seat(state, None if partitions is None else partitions.first(partitions.scheme.holding(container)))


def arrange(
    request: PodRequest,
    selector: GpuSelector | None,
    node: NodeState,
    mode: Mode,
    allowed: Callable[[list[tuple[Seat, ...]]], bool],
) -> list[tuple[Seat, ...]] | None:
    """Shares for each container, in the order of `request.containers`, or None where not all of them fit.

    All are in `mode`, and `allowed` by quotas.
    """
    if mode is not Mode.MIG and not _enough_in_sum(request, node):
        return None
    search = _Search(request, selector, node, mode, allowed)
    return search.seats() if search.run(0) else None


def _enough_in_sum(request: PodRequest, node: NodeState) -> bool:
    """Whether the node's free amounts, however spread, would do for the containers that run side by side."""
    slots = memory = cores = 0
    for container in request.containers:
        if not _only_starts(container):
            slots += container.count
            memory += container.count * min(container.memory_on(state.gpu.capacity_mib) for state in node.gpus)
            cores += container.count * container.cores
    return (
        slots <= sum(max(slots_for(container, state) for container in request.containers) for state in node.gpus)
        and memory <= sum(state.free_memory for state in node.gpus)
        and cores <= sum(state.free_cores for state in node.gpus)
    )


class _Search:
    """Depth-first over containers. `held` maps a GPU's place on the node to the containers of this pod on it."""

    def __init__(
        self,
        request: PodRequest,
        selector: GpuSelector | None,
        node: NodeState,
        mode: Mode,
        allowed: Callable[[list[tuple[Seat, ...]]], bool],
    ) -> None:
        self.request = request
        self.allowed = allowed
        self.selector = selector
        self.mode = mode
        self.states = node.gpus
        self.held: dict[int, tuple[int, ...]] = {}
        self.chosen: dict[int, tuple[int, ...]] = {}
        self.steps = 0
        self.order = sorted(range(len(request.containers)), key=self._turn)

    def run(self, depth: int) -> bool:
        if depth == len(self.order):
            return self.allowed(self.seats())
        index = self.order[depth]
        for places in self._choices(index):
            before = self.held
            self.held = before | {place: (*before.get(place, ()), index) for place in places}
            self.chosen[index] = places
            if self._within_quotas() and self.run(depth + 1):
                return True
            self.held = before
        return False

    def _within_quotas(self) -> bool:
        """Whether quotas may still allow what is chosen. Instances count for more, which is known at the end."""
        if self.request.room is None:
            return True
        held = [self._peak(indices, self.states[place]) for place, indices in self.held.items()]
        return self.request.room.takes(sum(each.memory_mib for each in held), sum(each.cores for each in held))

    def seats(self) -> list[tuple[Seat, ...]]:
        """What the search has found."""
        found: dict[tuple[int, int], Placed | None] = {}
        for place, held in self.held.items():
            instances = self._instances(held, place) if self.mode is Mode.MIG else None
            found.update(zip([(index, place) for index in held], instances or [None] * len(held), strict=True))
        return [
            tuple(Seat(self.states[place], found[index, place]) for place in self.chosen[index])
            for index in range(len(self.request.containers))
        ]

    def _turn(self, index: int) -> tuple[bool, bool, int, int]:
        """The hardest to place go first; what takes the time that is left, once it is known what is left."""
        container = self.request.containers[index]
        memory = container.memory_on(self.states[0].gpu.capacity_mib)
        return _only_starts(container), container.cores == 0, -memory, index

    def _choices(self, index: int) -> Iterator[tuple[int, ...]]:
        """Sets of GPUs for the container, the policy's preferred set first, equal ones once."""
        container = self.request.containers[index]
        able = [place for place in range(len(self.states)) if self._takes(index, place)]
        key = gpu_order(self.request.gpu_policy, container)
        prefers_held = _only_starts(container)
        able.sort(key=lambda place: (prefers_held and place not in self.held, key(self._with_own(place))))
        tried: set[tuple[object, ...]] = set()
        for places in preferred(self.request, container.count, able, self.states):
            self.steps += 1
            if self.steps > _MAX_STEPS:
                return
            if tried and self._alike(places) in tried:
                continue
            yield places
            tried.add(self._alike(places))

    def _alike(self, places: tuple[int, ...]) -> tuple[object, ...]:
        return tuple(sorted((self._likeness(place) for place in places), key=hash))

    def _takes(self, index: int, place: int) -> bool:
        container, held, state = self.request.containers[index], self.held.get(place), self.states[place]
        if held is None:
            return refusal(container, self.selector, state, mode=self.mode) is None
        pod_holds = self._sum((other for other in held if self._together(index, other)), state)
        total = self._peak((*held, index), state)
        if refusal(container, self.selector, state, pod_holds, total, self.mode) is not None:
            return False
        return self.mode is not Mode.MIG or self._instances((*held, index), place) is not None

    def _instances(self, indices: tuple[int, ...], place: int) -> tuple[Placed, ...] | None:
        partitions = self.states[place].partitions
        assert partitions is not None, "a GPU without known layouts is never in the mode mig"
        holding = [partitions.scheme.holding(self.request.containers[index]) for index in indices]
        return arrange_instances(partitions, holding, lambda one, other: self._together(indices[one], indices[other]))

    def _together(self, one: int, other: int) -> bool:
        """Whether two containers of the pod run at the same time."""
        first, second = sorted((one, other))
        containers = self.request.containers
        if _only_starts(containers[second]):
            return containers[first].sidecar
        return not _only_starts(containers[first])

    def _peak(self, indices: tuple[int, ...], state: GpuState) -> Taken:
        """The most that these containers hold of the GPU at any time, as `model.ledger` counts it."""
        containers = self.request.containers
        peak = self._sum((index for index in indices if not _only_starts(containers[index])), state)
        for index in indices:
            if _only_starts(containers[index]):
                pod_holds = (other for other in indices if other != index and self._together(index, other))
                peak = peak.at_least(self._sum((index, *pod_holds), state))
        return peak

    def _sum(self, indices: Iterator[int] | tuple[int, ...], state: GpuState) -> Taken:
        total = NOTHING
        for index in indices:
            container = self.request.containers[index]
            memory = held_memory(container, state)
            alone, timeless = needs_alone(container, state), container.cores == 0
            total = total.plus(Taken(1, memory, container.cores, alone, timeless, container.sharing.one_isolation))
        return total

    def _with_own(self, place: int) -> GpuState:
        """The GPU with this pod's containers counted in, for the policy."""
        state = self.states[place]
        held = self.held.get(place)
        return GpuState.of(state.gpu, state.taken.plus(self._peak(held, state))) if held else state

    def _likeness(self, place: int) -> tuple[object, ...]:
        state = self.states[place]
        gpu = state.gpu
        taken = state.taken
        isolation = (taken.slots, taken.cores, taken.without_cores, taken.one_isolation)
        free = (state.free_slots, state.free_memory, state.free_cores, state.busy, taken.whole, *isolation)
        where = (gpu.numa if self.request.numa_bind and gpu.numa is not None else -1, *gpu.links)
        division = (state.modes, state.kept, state.partitions)
        return (*free, gpu.capacity_mib, gpu.memory_mib, gpu.cores_capacity, where, self.held.get(place, ()), division)


def _only_starts(container: ContainerRequest) -> bool:
    """Whether the container ends before the ordinary ones begin."""
    return container.init and not container.sidecar
