"""How a rolling update moves replicas from old sets to the new one without leaving its bounds. Arithmetic only.

Two promises hold at every step: never more than `replicas + max_surge` pods, and never a step of ours that takes the
available pods under `replicas - max_unavailable`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a rollout may stray from `replicas`, in pods."""

    replicas: int
    max_surge: int
    max_unavailable: int

    @property
    def max_total(self) -> int:
        return self.replicas + self.max_surge

    @property
    def min_available(self) -> int:
        return max(0, self.replicas - self.max_unavailable)


@dataclass(frozen=True, slots=True)
class Set:
    """One ReplicaSet as the arithmetic sees it. `annotated_max` is max-replicas as last written on it, if ever."""

    name: str
    replicas: int
    available: int
    annotated_max: int | None = None


def bounds(replicas: int, max_surge: int | str, max_unavailable: int | str) -> Bounds:
    """Surge percentages round up, unavailable ones down; where both come to 0, one pod may be unavailable."""
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
    """The next replica counts of sets that change, by name: the new set first, then the old ones; empty when done.

    `old` is ordered oldest first.
    """
    total = new.replicas + sum(each.replicas for each in old)
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
    counts = {each.name: each.replicas for each in old}
    for each in old:  # replicas that serve nobody go first: they would hold the rollout up without helping anyone
        unhealthy = min(may_go, max(0, each.replicas - each.available))
        counts[each.name] -= unhealthy
        may_go -= unhealthy
    spare = new.available + sum(min(each.available, each.replicas) for each in old) - limits.min_available
    for each in old:
        healthy = min(max(0, spare), counts[each.name])
        counts[each.name] -= healthy
        spare -= healthy
    return {each.name: counts[each.name] for each in old if counts[each.name] != each.replicas}


def recreate_step(replicas: int, new: Set, old: Sequence[Set], *, old_pods_remain: bool) -> dict[str, int]:
    """The next replica counts for strategy Recreate: all old pods end before the first new one starts."""
    shrinking = {each.name: 0 for each in old if each.replicas}
    if shrinking:
        return shrinking
    if old_pods_remain or new.replicas == replicas:
        return {}
    return {new.name: replicas}


def proportional(limits: Bounds, new: Set | None, old: Sequence[Set], fallback_max: int) -> dict[str, int]:
    """Counts after `replicas` changed in the middle of a rollout: each set grows or shrinks with its weight.

    `fallback_max` stands in for a set's max-replicas annotation where that is missing.
    """
    everyone = [*old, *([new] if new else [])]
    active = [each for each in everyone if each.replicas > 0]
    if len(active) <= 1:
        only = active[0] if active else (new or (old[-1] if old else None))
        return {only.name: limits.replicas} if only and only.replicas != limits.replicas else {}
    allowed = limits.max_total if limits.replicas > 0 else 0
    to_add = allowed - sum(each.replicas for each in active)
    active.reverse()
    ordered = sorted(active, key=lambda each: -each.replicas)  # the larger first, and the newer of equals
    counts = {each.name: each.replicas for each in ordered}
    added = 0
    for each in ordered:
        share = _fraction(each, limits, fallback_max) if to_add else 0
        left = to_add - added
        share = max(0, min(share, left)) if to_add > 0 else min(0, max(share, left))
        counts[each.name] += share
        added += share
    rest = to_add - added
    for each in ordered:  # what rounding left over
        change = max(rest, -counts[each.name])
        counts[each.name] += change
        rest -= change
    return {each.name: counts[each.name] for each in ordered if counts[each.name] != each.replicas}


def _fraction(each: Set, limits: Bounds, fallback_max: int) -> int:
    if limits.replicas == 0:
        return -each.replicas
    was = each.annotated_max or fallback_max or each.replicas
    return round(each.replicas * limits.max_total / was) - each.replicas
