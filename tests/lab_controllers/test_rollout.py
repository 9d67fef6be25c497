"""Rolling updates never leave their bounds, whatever the pods do; and they end."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina_lab.controllers.deployment.rollout import Bounds, Set, bounds, proportional, recreate_step, rolling_step

AMOUNTS: tuple[int | str, ...] = (0, 1, 2, 5, "0%", "25%", "50%", "100%")
STEPS = 200


def apply(sets: list[Set], counts: dict[str, int]) -> list[Set]:
    """ReplicaSets end pods that are not available first."""
    return [
        replace(
            each,
            replicas=counts.get(each.name, each.replicas),
            available=min(each.available, counts.get(each.name, each.replicas)),
        )
        for each in sets
    ]


def check(limits: Bounds, before: list[Set], counts: dict[str, int]) -> None:
    """One step of ours: the total stays under the maximum or shrinks, the available stay over the minimum."""
    after = apply(before, counts)
    total_before, total = (sum(each.replicas for each in sets) for sets in (before, after))
    assert total <= max(limits.max_total, total_before)
    assert all(each.replicas >= 0 for each in after)
    available_before, available = (sum(each.available for each in sets) for sets in (before, after))
    if available < available_before and counts.keys() != {"new"}:
        assert available >= limits.min_available


def roll(limits: Bounds, sets: list[Set], get_ready: Iterator[int]) -> list[Set]:
    """Follow a rollout to its end; `get_ready` says how many new pods become available between two steps."""
    for _ in range(STEPS):
        new, *old = sets
        counts = rolling_step(limits, new, old)
        check(limits, sets, counts)
        moved = apply(sets, counts)
        new = moved[0]
        ready = min(new.replicas, new.available + next(get_ready))
        moved[0] = replace(new, available=ready)
        if moved == sets and not counts and ready == new.replicas:
            return moved
        sets = moved
    raise AssertionError(f"the rollout does not end: {limits} {sets}")


def endless(value: int) -> Iterator[int]:
    while True:
        yield value


@pytest.mark.parametrize("replicas", range(8))
@pytest.mark.parametrize("pace", [1, 3, 100])
def test_every_rollout_ends_within_its_bounds(replicas: int, pace: int) -> None:
    for surge, unavailable in product(AMOUNTS, AMOUNTS):
        limits = bounds(replicas, surge, unavailable)
        start = [Set("new", 0, 0), Set("old", replicas, replicas)]
        new, old = roll(limits, start, endless(pace))
        assert (new.replicas, new.available, old.replicas) == (replicas, replicas, 0), limits


@pytest.mark.parametrize("replicas", range(1, 7))
def test_unavailable_old_pods_do_not_delay_a_rollout(replicas: int) -> None:
    for surge, unavailable, sick in product(AMOUNTS, AMOUNTS, range(replicas + 1)):
        limits = bounds(replicas, surge, unavailable)
        start = [Set("new", 0, 0), Set("older", sick, 0), Set("old", replicas - sick, replicas - sick)]
        new, older, old = roll(limits, start, endless(2))
        assert (new.replicas, older.replicas, old.replicas) == (replicas, 0, 0)


def test_a_rollout_whose_pods_never_get_ready_stops_with_the_old_pods_serving() -> None:
    for replicas, surge, unavailable in product(range(1, 7), AMOUNTS, AMOUNTS):
        limits = bounds(replicas, surge, unavailable)
        new, old = roll_stuck(limits, [Set("new", 0, 0), Set("old", replicas, replicas)])
        assert old.available >= limits.min_available
        assert new.replicas + old.replicas <= limits.max_total


def roll_stuck(limits: Bounds, sets: list[Set]) -> list[Set]:
    for _ in range(STEPS):
        counts = rolling_step(limits, sets[0], sets[1:])
        check(limits, sets, counts)
        if not counts:
            return sets
        sets = apply(sets, counts)
    raise AssertionError("a rollout without progress does not settle")


@st.composite
def middles(draw: st.DrawFn) -> tuple[Bounds, list[Set], list[int]]:
    """Any state that a rollout, a rescaling or a crash may have left behind."""
    replicas = draw(st.integers(0, 12))
    limits = bounds(replicas, draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(AMOUNTS)))
    sets = []
    for name in ["new", *(f"old{number}" for number in range(draw(st.integers(0, 3))))]:
        size = draw(st.integers(0, 15))
        sets.append(Set(name, size, draw(st.integers(0, size))))
    return limits, sets, draw(st.lists(st.integers(0, 4), min_size=5, max_size=20))


@given(middles())
@settings(max_examples=400, deadline=None)
def test_a_rollout_from_any_state_ends_within_its_bounds(state: tuple[Bounds, list[Set], list[int]]) -> None:
    limits, sets, paces = state

    def pace() -> Iterator[int]:
        yield from paces
        yield from endless(1)

    done = roll(limits, sets, pace())
    assert done[0].replicas == limits.replicas
    assert sum(each.replicas for each in done[1:]) == 0


@given(middles())
@settings(max_examples=400, deadline=None)
def test_rescaling_comes_to_exactly_the_allowed_total(state: tuple[Bounds, list[Set], list[int]]) -> None:
    limits, (new, *old), _ = state
    sets = apply([new, *old], proportional(limits, new, old, 0))
    active = [each for each in (new, *old) if each.replicas]
    total = sum(each.replicas for each in sets)
    assert all(each.replicas >= 0 for each in sets)
    if len(active) > 1:
        assert total == (limits.max_total if limits.replicas else 0)
    else:
        assert total == limits.replicas


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", Bounds(10, 3, 2)),
        (1, "25%", "25%", Bounds(1, 1, 0)),
        (4, 0, 0, Bounds(4, 0, 1)),
        (4, 0, "10%", Bounds(4, 0, 1)),
        (3, 2, 9, Bounds(3, 2, 3)),
        (0, "25%", "25%", Bounds(0, 0, 1)),
    ],
)
def test_surge_rounds_up_and_unavailable_down(
    replicas: int, surge: int | str, unavailable: int | str, expected: Bounds
) -> None:
    assert bounds(replicas, surge, unavailable) == expected


def test_recreate_waits_for_the_last_old_pod() -> None:
    new, old = Set("new", 0, 0), Set("old", 3, 3)
    assert recreate_step(3, new, [old], old_pods_remain=True) == {"old": 0}
    gone = replace(old, replicas=0, available=0)
    assert recreate_step(3, new, [gone], old_pods_remain=True) == {}
    assert recreate_step(3, new, [gone], old_pods_remain=False) == {"new": 3}
    assert recreate_step(3, replace(new, replicas=3), [gone], old_pods_remain=False) == {}
