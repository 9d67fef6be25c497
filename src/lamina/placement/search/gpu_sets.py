"""Which sets of GPUs a container may be given, the best first.

Ordinarily these are combinations in the policy's order. A pod bound to one NUMA node gets GPUs of one node only.
With the policy `topology-aware` the set with the highest sum of connections comes first; of single GPUs the one whose
connections to the others that would do are worth least, so that well connected ones stay together.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

from lamina.model.policies import TOPOLOGY, chain
from lamina.model.requests import PodRequest
from lamina.placement.state.nodes import GpuState

_MOST_SETS = 2000
"""Sets that are compared one by one: 8 of 12 GPUs are 495. Beyond that each set is grown from one GPU."""


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
    elif comb(len(group), count) <= _MOST_SETS:
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
