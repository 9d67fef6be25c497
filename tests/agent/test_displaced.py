"""Which borrowers the inventory lists: those that have kept memory on the host for as long as the policy says."""

from pathlib import Path

import pytest

from lamina.agent.limits.arbitration import CALM_S, DisplacedBorrowers
from lamina.core.evictions import MAX_DISPLACED, Borrowers, DisplacedBorrower

POLICY = Borrowers(seconds=30, notice_seconds=60, namespaces=("*",))
PODS = ["a", "b"]


def on(**gpus: str) -> dict[str, Path]:
    """The pod whose container is displaced, by GPU."""
    return {gpu: Path(f"/containers/{pod}_main") for gpu, pod in gpus.items()}


def names(borrowers: DisplacedBorrowers) -> list[str]:
    return [each.pod_uid for each in borrowers.found]


def test_a_pod_is_listed_once_it_has_been_displaced_for_long_enough() -> None:
    borrowers = DisplacedBorrowers(POLICY)
    assert not borrowers.observe(on(x="a"), PODS, 1000.5)
    for after in range(1, 30):
        assert not borrowers.observe(on(x="a"), PODS, 1000.5 + after)
    assert borrowers.observe(on(x="a"), PODS, 1030.5)
    assert borrowers.found == (DisplacedBorrower(pod_uid="a", since=1000),)
    assert not borrowers.observe(on(x="a"), PODS, 1031)


@pytest.mark.parametrize(("pause", "listed"), [(CALM_S, ["a"]), (CALM_S + 0.5, [])])
def test_a_short_pause_is_none(pause: float, listed: list[str]) -> None:
    borrowers = DisplacedBorrowers(POLICY)
    for after in range(31):
        borrowers.observe(on(x="a"), PODS, 1000 + after)
    borrowers.observe({}, PODS, 1030 + pause)
    assert names(borrowers) == listed
    borrowers.observe(on(x="a"), PODS, 1031 + pause)
    assert names(borrowers) == listed


def test_a_pod_on_two_gpus_is_listed_once_and_the_longest_displaced_come_first() -> None:
    borrowers = DisplacedBorrowers(POLICY)
    borrowers.observe(on(x="b"), PODS, 999)
    for after in range(40):
        borrowers.observe(on(x="a", y="a", z="b"), PODS, 1000 + after)
    assert names(borrowers) == ["b", "a"]


def test_only_pods_with_grants_are_listed() -> None:
    borrowers = DisplacedBorrowers(POLICY)
    for after in range(40):
        borrowers.observe(on(x="claim", y="a"), PODS, 1000 + after)
    assert names(borrowers) == ["a"]


def test_without_a_policy_nothing_is_listed() -> None:
    borrowers = DisplacedBorrowers(Borrowers(seconds=0, notice_seconds=60, namespaces=("*",)))
    assert not any(borrowers.observe(on(x="a"), PODS, 1000 + after) for after in range(100))


def test_the_list_is_bounded() -> None:
    borrowers = DisplacedBorrowers(POLICY)
    many = [f"pod{n}" for n in range(MAX_DISPLACED + 5)]
    for after in range(31):
        borrowers.observe({pod: Path(f"/c/{pod}_main") for pod in many}, many, 1000 + after)
    assert len(borrowers.found) == MAX_DISPLACED
