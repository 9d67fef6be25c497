"""Which pods of a node to evict so that another one fits: the cheapest set that does, and never more.

Sets are compared as kube-scheduler compares nodes: fewer violated disruption budgets, then the lower highest priority,
then the smaller sum of priorities, in which each pod counts at least one, so that fewer pods win among equals; at last
the pods that started later. Every part only grows when a pod is added, so a search in the order of cost finds the
cheapest set first. It is exact within a bound; beyond it, pods are spared one after the other, the most important
first.
"""

import heapq
from collections.abc import Callable, Sequence

from msgspec import Struct

_MAX_SETS = 500
_OFFSET = 1 << 31
"""Makes every priority positive, as kube-scheduler does."""


class Victim(Struct, frozen=True):
    """A pod that may be evicted. `started` is in seconds since the epoch."""

    uid: str
    priority: int
    started: float


Cost = tuple[int, int, int, float]


def cheapest(
    candidates: Sequence[Victim],
    enough: Callable[[frozenset[str]], bool],
    violations: Callable[[frozenset[str]], int] = lambda uids: 0,
    *,
    most_sets: int = _MAX_SETS,
) -> tuple[Victim, ...] | None:
    """The victims to evict, or None where evicting all would not help. Both functions take the UIDs of a set.

    `enough` must stay true when a set grows, `violations` must not shrink. `most_sets` bounds the exact search.
    """
    if not enough(frozenset(victim.uid for victim in candidates)):
        return None
    pool = sorted(candidates, key=lambda victim: (victim.priority, -victim.started, victim.uid))
    spared = _spare(pool, enough)
    limit = cost(spared, violations)
    heap: list[tuple[Cost, tuple[int, ...]]] = [(cost((), violations), ())]
    for _ in range(min(most_sets, _MAX_SETS)):
        price, places = heapq.heappop(heap)
        if price >= limit:
            break
        chosen = tuple(pool[place] for place in places)
        if enough(frozenset(victim.uid for victim in chosen)):
            return chosen
        for place in range(places[-1] + 1 if places else 0, len(pool)):
            more = cost((*chosen, pool[place]), violations)
            if more < limit:
                heapq.heappush(heap, (more, (*places, place)))
        if not heap:
            break
    return spared


def cost(victims: Sequence[Victim], violations: Callable[[frozenset[str]], int]) -> Cost:
    """What evicting them costs; lower is better."""
    if not victims:
        return 0, -_OFFSET, 0, float("-inf")
    highest = max(victim.priority for victim in victims)
    began = min(victim.started for victim in victims if victim.priority == highest)
    total = sum(victim.priority + _OFFSET for victim in victims)
    return violations(frozenset(victim.uid for victim in victims)), highest, total, -began


def _spare(pool: Sequence[Victim], enough: Callable[[frozenset[str]], bool]) -> tuple[Victim, ...]:
    """What is left to evict when the most important pods are spared first: none of them could stay."""
    left = {victim.uid for victim in pool}
    for victim in reversed(pool):
        if enough(frozenset(left - {victim.uid})):
            left.discard(victim.uid)
    return tuple(victim for victim in pool if victim.uid in left)
