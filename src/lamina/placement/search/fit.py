"""Whether a pod fits on a node, and which shares it gets there.

A container that asks n GPUs gets the same share of n different ones. Several containers of a pod may share a GPU.
Ordinary init containers run before the others, so on each GPU the pod holds its peak: they are placed last and prefer
the GPUs that the pod has anyway. For a pod with one GPU container the choice is a sort; for several it is a search
over choices in the policy's order, which makes the answer exact: more free capacity never makes a pod unfit. On
nodes whose GPUs may be partitioned, all shares of a pod are in one mode, since the agent gives a container one kind of
device. What quotas leave bounds each choice, in the amounts that are granted then.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from msgspec import Struct

from lamina.core.gpus import MigInstance, Mode
from lamina.core.grants import ComputePolicy, ContainerGrant, Share
from lamina.core.ledger import amounts, taken_by
from lamina.core.mig import Placed
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement.explanation.misfit import Misfit
from lamina.placement.mig.partitions import PartitionScheme
from lamina.placement.rules.chosen_mode import chosen_mode
from lamina.placement.rules.refusal import held_memory, needs_alone, refusal
from lamina.placement.search.gpu_sets import preferred, preferred_within
from lamina.placement.search.multi_container import Seat, arrange, seat
from lamina.placement.search.policies import gpu_order, node_score
from lamina.placement.state.modes import MODES
from lamina.placement.state.nodes import GpuState, NodeState


class PodPlacement(Struct, frozen=True):
    """A pod on a node: what its containers get, in the pod's order, and the node's score from 0 to 10."""

    containers: tuple[ContainerGrant, ...]
    score: float


_NO_WISHES = GpuSelector()


def fit(request: PodRequest, node: NodeState, favored: frozenset[str] = frozenset()) -> PodPlacement | Misfit:
    """The pod's shares on the node, or why it does not fit. The pod itself must not be counted in the node's state.

    `favored` are UUIDs of GPUs that a pod with one GPU container gets before others.
    """
    selector = None if request.selector == _NO_WISHES else request.selector
    for container in request.containers:
        refusals = tuple([refusal(container, selector, state) for state in node.gpus])
        if refusals.count(None) < container.count:
            return Misfit(node, container, request.selector, refusals, request.containers)
    order = _order(request.gpu_policy, request.containers[0], favored)
    for mode in _modes(request, selector, node, order):
        if len(request.containers) == 1:
            chosen = _one(request, selector, node, mode, order)
        else:
            chosen = arrange(request, selector, node, mode, partial(_is_within_quotas, request, mode, node))
        if chosen is not None:
            return _placement(request, chosen, mode, node)
    whatever_quotas_leave = fit(request.within(None), node, favored) if request.room is not None else None
    if isinstance(whatever_quotas_leave, PodPlacement):
        return Misfit(
            node,
            container,
            request.selector,
            refusals,
            request.containers,
            beyond=counted(whatever_quotas_leave.containers),
        )
    several = len(request.containers) > 1
    mixed = not several and all(_able(container, selector, node, mode) < container.count for mode in MODES)
    return Misfit(
        node,
        container,
        request.selector,
        refusals,
        request.containers,
        together=several,
        mixed=mixed,
        apart=not several and not mixed,
    )


def _order(
    policy: str, container: ContainerRequest, favored: frozenset[str]
) -> Callable[[GpuState], tuple[object, ...]]:
    """A sort key that puts the GPU to try first first."""
    order = gpu_order(policy, container)
    return lambda state: (state.gpu.uuid not in favored, order(state))


def _modes(
    request: PodRequest, selector: GpuSelector | None, node: NodeState, order: Callable[[GpuState], Any]
) -> tuple[Mode, ...]:
    """The modes to try: that of the first GPU for the first container, and then the others. All shares of a pod are in
    one mode."""
    container = request.containers[0]
    if all(state.modes == (Mode.QUOTA,) for state in node.gpus):
        return (Mode.QUOTA,)
    first = min((s for s in node.gpus if refusal(container, selector, s) is None), key=order)
    preferred = [mode for mode in first.modes if refusal(container, selector, first, mode=mode) is None]
    return tuple(dict.fromkeys((*preferred, *MODES)))


def _one(
    request: PodRequest, selector: GpuSelector | None, node: NodeState, mode: Mode, order: Callable[[GpuState], Any]
) -> list[tuple[Seat, ...]] | None:
    """The GPUs for a container that is alone in its pod."""
    [container] = request.containers
    able = [place for place, state in enumerate(node.gpus) if refusal(container, selector, state, mode=mode) is None]
    able.sort(key=lambda place: order(node.gpus[place]))
    if container.room is None or container.count == 1:
        places = next(preferred(request, container.count, able, node.gpus), None)
    else:
        places = preferred_within(
            request,
            container.count,
            able,
            node.gpus,
            container.room,
            lambda place: _counted_for(container, node.gpus[place], mode),
        )
    return None if places is None else [tuple([seat(container, node.gpus[place], mode) for place in places])]


def _counted_for(container: ContainerRequest, state: GpuState, mode: Mode) -> tuple[int, int]:
    """What quotas count of the container's share of the GPU."""
    seated = seat(container, state, mode)
    if seated.instance is None or state.partitions is None:
        return held_memory(container, state), container.cores
    card = state.partitions.scheme.card
    profile = card.profile(seated.instance.profile)
    return profile.holds_mib, card.cores(profile)


def counted(containers: Iterable[ContainerGrant]) -> tuple[int, int]:
    """What quotas count of a pod's shares: MiB and percent, over all its GPUs."""
    total = amounts(taken_by(containers).values())
    return total.memory_mib, total.cores


def _is_within_quotas(request: PodRequest, mode: Mode, node: NodeState, chosen: list[tuple[Seat, ...]]) -> bool:
    room = request.room
    return room is None or room.takes(*counted(_placement(request, chosen, mode, node).containers))


def _able(container: ContainerRequest, selector: GpuSelector | None, node: NodeState, mode: Mode) -> int:
    """How many GPUs take the container in the mode."""
    return sum(refusal(container, selector, state, mode=mode) is None for state in node.gpus)


def _placement(request: PodRequest, chosen: list[tuple[Seat, ...]], mode: Mode, node: NodeState) -> PodPlacement:
    grants = tuple(
        _grant(request, container, seats, mode, node)
        for container, seats in zip(request.containers, chosen, strict=True)
    )
    return PodPlacement(grants, node_score(request.node_policy, node.usage))


def _grant(
    request: PodRequest, container: ContainerRequest, seats: tuple[Seat, ...], mode: Mode, node: NodeState
) -> ContainerGrant:
    shares = tuple([_share(request, container, seat, mode) for seat in seats])
    because = [chosen_mode(share, seat.state, request.selector) for share, seat in zip(shares, seats, strict=True)]
    scaled = [seat.state.gpu for seat in seats if not container.whole and seat.instance is None]
    return ContainerGrant(
        name=container.container,
        shares=shares,
        init=container.init,
        sidecar=container.sidecar,
        priority=container.priority,
        oversubscribed=any(gpu.capacity_mib > gpu.memory_mib for gpu in scaled),
        log_level=node.log_level,
        because="; ".join(dict.fromkeys(filter(None, because))),
    )


def _physical(memory: int, state: GpuState) -> int:
    """What of a share is sure to have a place on the GPU; 0, for all, where no memory is granted twice."""
    there, granted = state.gpu.memory_mib, state.gpu.capacity_mib
    return max(1, memory * there // granted) if granted > there else 0


def _most_memory(container: ContainerRequest, memory: int, state: GpuState) -> int:
    """The limit, where the GPU has more than what is requested; nothing beyond the GPU can be lent."""
    most = min(container.most_memory_mib, state.gpu.memory_mib)
    return most if most > memory else 0


def _share(request: PodRequest, container: ContainerRequest, seat: Seat, mode: Mode) -> Share:
    state, partitions = seat.state, seat.state.partitions
    if seat.instance is not None and partitions is not None:
        return _instance(container, state, partitions.scheme, seat.instance)
    alone, memory = needs_alone(container, state), held_memory(container, state)
    mps = mode is Mode.MPS
    return Share(
        gpu=state.gpu.uuid,
        # A whole GPU has what it has; only shares of it can be scaled beyond.
        memory_mib=held_memory(container, state),
        physical_mib=0 if container.whole else _physical(memory, state),
        most_memory_mib=0 if alone else _most_memory(container, memory, state),
        cores=container.cores,
        most_cores=0 if alone or mps else container.most_cores,
        mode=Mode.WHOLE if container.whole and not mps else mode,
        exclusive=alone,
        compute_policy=_compute_policy(request, container, mps=mps, alone=alone),
        most_sharers=container.sharing.most,
        one_isolation=container.sharing.one_isolation,
    )


def _compute_policy(request: PodRequest, container: ContainerRequest, *, mps: bool, alone: bool) -> ComputePolicy:
    if alone or not container.cores:
        return ComputePolicy.NONE
    return ComputePolicy.THREADS if mps else request.compute_policy


def _instance(container: ContainerRequest, state: GpuState, scheme: PartitionScheme, placed: Placed) -> Share:
    """An instance has the memory and compute of its profile, and the hardware holds it to them."""
    profile = scheme.card.profile(placed.profile)
    return Share(
        gpu=state.gpu.uuid,
        memory_mib=profile.holds_mib,
        cores=scheme.card.cores(profile),
        mode=Mode.MIG,
        exclusive=container.exclusive,
        most_sharers=container.sharing.most,
        mig=MigInstance(profile=placed.profile, start=placed.start),
    )
