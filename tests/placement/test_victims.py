"""The cheapest set of victims: against every set there is, and in the cases that people meet."""

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from lamina.placement.eviction.victims import Victim, cheapest, cost

victims = st.lists(
    st.builds(
        Victim,
        uid=st.uuids().map(str),
        priority=st.integers(-5, 5),
        started=st.integers(0, 5).map(float),
    ),
    max_size=7,
    unique_by=lambda victim: victim.uid,
)


@given(victims, st.data())
def test_nothing_that_helps_is_cheaper(candidates: list[Victim], data: st.DataObject) -> None:
    frees = {victim.uid: data.draw(st.integers(0, 4)) for victim in candidates}
    guarded = {victim.uid for victim in candidates if data.draw(st.booleans())}
    needed = data.draw(st.integers(0, 10))

    def enough(uids: frozenset[str]) -> bool:
        return sum(frees[uid] for uid in uids) >= needed

    def violations(uids: frozenset[str]) -> int:
        return len(uids & guarded)

    found = cheapest(candidates, enough, violations)
    sets = chain.from_iterable(combinations(candidates, size) for size in range(len(candidates) + 1))
    helping = [each for each in sets if enough(frozenset(victim.uid for victim in each))]
    if found is None:
        assert not helping
    else:
        assert enough(frozenset(victim.uid for victim in found))
        assert cost(found, violations) == min(cost(each, violations) for each in helping)


def of(uid: str, priority: int = 0, started: float = 0.0) -> Victim:
    return Victim(uid, priority, started)


def test_one_pod_rather_than_two_and_the_younger_rather_than_the_older() -> None:
    sizes = {"small-1": 1, "small-2": 1, "old": 2, "young": 2}
    candidates = [of("small-1", 0, 9), of("small-2", 0, 9), of("old", 0, 1), of("young", 0, 5)]
    found = cheapest(candidates, lambda uids: sum(sizes[uid] for uid in uids) >= 2)
    assert found == (of("young", 0, 5),)


def test_two_of_low_priority_rather_than_one_of_high() -> None:
    sizes = {"low-1": 1, "low-2": 1, "high": 2}
    candidates = [of("low-1", 1), of("high", 5), of("low-2", 1)]
    found = cheapest(candidates, lambda uids: sum(sizes[uid] for uid in uids) >= 2)
    assert found is not None and {victim.uid for victim in found} == {"low-1", "low-2"}


def test_a_budget_weighs_more_than_priority() -> None:
    found = cheapest([of("guarded", 1), of("free", 9)], bool, lambda uids: int("guarded" in uids))
    assert found == (of("free", 9),)


def test_many_pods_are_still_answered_and_none_is_evicted_in_vain() -> None:
    candidates = [of(f"p{number:03}", number % 7, number) for number in range(120)]
    needed = {f"p{number:03}" for number in range(0, 120, 9)}
    found = cheapest(candidates, lambda uids: needed <= uids)
    assert found is not None and {victim.uid for victim in found} == needed
