"""Which sets of GPUs a container may be given, the best first.

Ordinarily these are combinations in the policy's order. A pod bound to one NUMA node gets GPUs of one node only.
With the policy `topology-aware` the set with the highest sum of connections comes first; of single GPUs the one whose
connections to the others that would do are worth least, so that well connected ones stay together.

Where quotas leave little to the pod, sets that come to more are left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from math import comb

from lamina.core.policies import TOPOLOGY, chain
from lamina.core.quota_room import QuotaRoom
from lamina.core.requests import PodRequest
from lamina.placement.state.nodes import GpuState

_MAX_SETS = 2000
"""Sets that are compared one by one: 8 of 12 GPUs are 495. Beyond that each set is grown from one GPU."""

Amounts = tuple[int, int]
"""What counts for quotas: memory in MiB and compute in percent."""


def preferred(
    request: PodRequest, count: int, able: Sequence[int], states: Sequence[GpuState]
) -> Iterator[tuple[int, ...]]:
    """Sets of `count` places out of `able`, which are places in `states` in the policy's order."""
    groups = _numa_groups(able, states) if request.numa_bind else [able]
    large_enough = [group for group in groups if len(group) >= count]
    if TOPOLOGY not in chain(request.gpu_policy):
        for group in large_enough:
            yield from combinations(group, count)
        return
    found = [places for group in large_enough for places in _connected(group, count, states)]
    found.sort(key=lambda places: -_worth(places, states))
    yield from found


def preferred_within(
    request: PodRequest,
    count: int,
    able: Sequence[int],
    states: Sequence[GpuState],
    room: QuotaRoom,
    counted: Callable[[int], Amounts],
) -> tuple[int, ...] | None:
    """The first of these sets that quotas allow. `counted` is what one of the places comes to."""
    amounts = {place: counted(place) for place in able}
    if TOPOLOGY in chain(request.gpu_policy):
        for places in islice(preferred(request, count, able, states), _MAX_SETS):
            if _allowed([amounts[place] for place in places], room):
                return places
    groups = _numa_groups(able, states) if request.numa_bind else [able]
    found = (_first_within(group, count, amounts, room) for group in groups if len(group) >= count)
    return next((places for places in found if places is not None), None)


def _first_within(
    group: Sequence[int], count: int, amounts: Mapping[int, Amounts], room: QuotaRoom
) -> tuple[int, ...] | None:
    """The first of the combinations that quotas allow: a place is taken if the cheapest of those after it will do."""
    chosen: list[int] = []
    for position, place in enumerate(group):
        if len(chosen) == count:
            break
        cheapest = sorted(amounts[other] for other in group[position + 1 :])[: count - len(chosen) - 1]
        together = [*(amounts[other] for other in chosen), amounts[place], *cheapest]
        if len(together) == count and _allowed(together, room):
            chosen.append(place)
    return tuple(chosen) if len(chosen) == count else None


def _allowed(amounts: Sequence[Amounts], room: QuotaRoom) -> bool:
    return room.takes(sum(memory for memory, _ in amounts), sum(cores for _, cores in amounts))


def _numa_groups(able: Sequence[int], states: Sequence[GpuState]) -> list[list[int]]:
    """The places by NUMA node. A GPU whose node is not known shares it with no other."""
    groups: dict[tuple[str, int], list[int]] = {}
    for place in able:
        numa = states[place].gpu.numa
        groups.setdefault(("unknown", place) if numa is None else ("node", numa), []).append(place)
    return list(groups.values())


def _connected(group: Sequence[int], count: int, states: Sequence[GpuState]) -> Iterator[tuple[int, ...]]:
    if count == 1:
        loss = {place: sum(_link(place, other, states) for other in group) for place in group}
        yield from ((place,) for place in sorted(group, key=lambda place: loss[place]))
    elif comb(len(group), count) <= _MAX_SETS:
        yield from combinations(group, count)
    else:
        yield from (_grown(first, group, count, states) for first in group)


def _grown(first: int, group: Sequence[int], count: int, states: Sequence[GpuState]) -> tuple[int, ...]:
    """`first` and, one after the other, the GPU that is best connected to those before."""
    chosen = [first]
    while len(chosen) < count:
        rest = (place for place in group if place not in chosen)
        chosen.append(max(rest, key=lambda place: sum(_link(place, other, states) for other in chosen)))
    return tuple(chosen)


def _worth(places: tuple[int, ...], states: Sequence[GpuState]) -> int:
    return sum(_link(one, other, states) for one, other in combinations(places, 2))


def _link(one: int, other: int, states: Sequence[GpuState]) -> int:
    """How well two GPUs are connected; a connection that only one of them reports counts nothing."""
    there, back = states[one].gpu.links, states[other].gpu.links
    return min(there[other], back[one]) if len(there) == len(back) == len(states) else 0
