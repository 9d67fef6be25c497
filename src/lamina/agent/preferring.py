"""Which devices a container should get, of those that kubelet has left.

Replicas are chosen one by one: first from the GPU that the container has least of, so that nobody gets a GPU twice
while another one has a replica left; among those from the GPU with the fewest replicas taken (distributed) or the most
(packed). NVIDIA's packed policy asks only for the latter, and gives a container that wants two the same GPU twice.

Whole GPUs are chosen together: the set whose pairs are connected best.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from lamina.agent.plain import unit_of

PACKED = "packed"
_MOST_SETS = 200_000
"""Sets of whole GPUs that are compared; with more there are no nodes yet."""


def replicas(
    available: Sequence[str], required: Sequence[str], size: int, every: Sequence[str], policy: str
) -> list[str]:
    """`size` replicas, the required ones first. `every` are all replicas of the resource."""
    total = Counter(map(unit_of, every))
    free: dict[str, list[str]] = {}
    for device in available:
        if device not in required:
            free.setdefault(unit_of(device), []).append(device)
    left = Counter(map(unit_of, available))
    taken = {unit: total[unit] - left[unit] for unit in free}
    mine = Counter(map(unit_of, required))
    chosen = list(required)
    order = list(free)
    while len(chosen) < size and free:
        sign = -1 if policy == PACKED else 1
        unit = min(free, key=lambda each: (mine[each], sign * taken[each], order.index(each)))
        chosen.append(free[unit].pop(0))
        mine[unit] += 1
        taken[unit] += 1
        if not free[unit]:
            del free[unit]
    return chosen


def connected(
    available: Sequence[str], required: Sequence[str], size: int, links: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """`size` whole GPUs with the greatest sum of connections between them; `links` by UUIDs of both."""
    fixed = list(required)
    rest = [device for device in available if device not in fixed]
    best, most = rest[: size - len(fixed)], -1
    for number, more in enumerate(combinations(rest, max(0, size - len(fixed)))):
        together = [*fixed, *more]
        worth = sum(links.get(a, {}).get(b, 0) for a, b in combinations(together, 2))
        if worth > most:
            best, most = list(more), worth
        if number >= _MOST_SETS:
            break
    return [*fixed, *best]
