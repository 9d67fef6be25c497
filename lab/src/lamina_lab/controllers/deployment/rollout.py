"""How a rolling update moves replicas from old sets to the new one within its bounds. Arithmetic only.

Two invariants hold at every step: there are never more than `replicas + max_surge` pods, and no step takes the
available pods below `replicas - max_unavailable`.
"""

import math
from collections.abc import Sequence

from msgspec import Struct


class Bounds(Struct, frozen=True):
    """How far a rollout may deviate from `replicas`, in pods."""

    replicas: int
    max_surge: int
    max_unavailable: int

    @property
    def max_total(self) -> int:
        return self.replicas + self.max_surge

    @property
    def min_available(self) -> int:
        return max(0, self.replicas - self.max_unavailable)


class Set(Struct, frozen=True):
    """One ReplicaSet in numbers. `annotated_max` is the max-replicas annotation, if it has been written."""

    name: str
    replicas: int
    available: int
    annotated_max: int | None = None


def bounds(replicas: int, max_surge: int | str, max_unavailable: int | str) -> Bounds:
    """Surge percentages round up, unavailable ones down. If both are 0, one pod may be unavailable."""
    surge = _absolute(max_surge, replicas, round_up=True)
    unavailable = min(_absolute(max_unavailable, replicas, round_up=False), replicas)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, unavailable)


def _absolute(amount: int | str, whole: int, *, round_up: bool) -> int:
    if isinstance(amount, int):
        return max(0, amount)
    part = int(amount.rstrip("%")) * whole / 100
    return max(0, math.ceil(part) if round_up else math.floor(part))


def rolling_step(limits: Bounds, new: Set, old: Sequence[Set]) -> dict[str, int]:
    """The next replica counts of sets that change, by name, the new set first. Empty when the rollout is done.

    `old` is ordered oldest first.
    """
    total = new.replicas + sum(one_set.replicas for one_set in old)
    if new.replicas > limits.replicas:
        return {new.name: limits.replicas}
    room = min(limits.max_total - total, limits.replicas - new.replicas)
    if room > 0:
        return {new.name: new.replicas + room}
    return _shrink_old(limits, new, old, total)


def _shrink_old(limits: Bounds, new: Set, old: Sequence[Set], total: int) -> dict[str, int]:
    may_go = total - limits.min_available - (new.replicas - new.available)
    if may_go <= 0:
        return {}
    counts = {one_set.name: one_set.replicas for one_set in old}
    for one_set in old:  # unavailable replicas go first: they delay the rollout and serve no requests
        unhealthy = min(may_go, max(0, one_set.replicas - one_set.available))
        counts[one_set.name] -= unhealthy
        may_go -= unhealthy
    spare = new.available + sum(min(one_set.available, one_set.replicas) for one_set in old) - limits.min_available
    for one_set in old:
        healthy = min(max(0, spare), counts[one_set.name])
        counts[one_set.name] -= healthy
        spare -= healthy
    return {one_set.name: counts[one_set.name] for one_set in old if counts[one_set.name] != one_set.replicas}


def recreate_step(replicas: int, new: Set, old: Sequence[Set], *, old_pods_remain: bool) -> dict[str, int]:
    """The next replica counts for strategy Recreate: all old pods end before the first new one starts."""
    shrinking = {one_set.name: 0 for one_set in old if one_set.replicas}
    if shrinking:
        return shrinking
    if old_pods_remain or new.replicas == replicas:
        return {}
    return {new.name: replicas}


def proportional(limits: Bounds, new: Set | None, old: Sequence[Set], fallback_max: int) -> dict[str, int]:
    """Counts after `replicas` changed during a rollout: each set grows or shrinks in proportion to its size.

    `fallback_max` replaces a missing max-replicas annotation.
    """
    all_nodes = [*old, *([new] if new else [])]
    active = [all_node for all_node in all_nodes if all_node.replicas > 0]
    if len(active) <= 1:
        only = active[0] if active else (new or (old[-1] if old else None))
        return {only.name: limits.replicas} if only and only.replicas != limits.replicas else {}
    allowed = limits.max_total if limits.replicas > 0 else 0
    to_add = allowed - sum(one_set.replicas for one_set in active)
    active.reverse()
    ordered = sorted(active, key=lambda one_set: -one_set.replicas)  # larger sets first, then newer ones
    counts = {one_set.name: one_set.replicas for one_set in ordered}
    added = 0
    for one_set in ordered:
        share = _fraction(one_set, limits, fallback_max) if to_add else 0
        left = to_add - added
        share = max(0, min(share, left)) if to_add > 0 else min(0, max(share, left))
        counts[one_set.name] += share
        added += share
    rest = to_add - added
    for one_set in ordered:  # the remainder after rounding
        change = max(rest, -counts[one_set.name])
        counts[one_set.name] += change
        rest -= change
    return {one_set.name: counts[one_set.name] for one_set in ordered if counts[one_set.name] != one_set.replicas}


def _fraction(one_set: Set, limits: Bounds, fallback_max: int) -> int:
    if limits.replicas == 0:
        return -one_set.replicas
    was = one_set.annotated_max or fallback_max or one_set.replicas
    return round(one_set.replicas * limits.max_total / was) - one_set.replicas
