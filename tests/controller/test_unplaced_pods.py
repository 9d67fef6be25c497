"""Pods that fit nowhere are counted by namespace and cause, with the longest wait, until they have a node."""

import pytest

from lamina.controller.scheduling import unplaced_pods
from lamina.controller.scheduling.unplaced_pods import FORGOTTEN_AFTER_S, UnplacedGroup, UnplacedPods
from lamina.ports.kube import Object
from tests.controller.binders import Bench
from tests.controller.cluster import gpu_pod


def pod(name: str, namespace: str = "default") -> Object:
    made = gpu_pod(name, namespace=namespace, gpu=1)
    made["metadata"]["uid"] = f"uid-of-{name}"
    return made


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_pods_are_grouped_by_namespace_and_cause(bench: Bench) -> None:
    unplaced = UnplacedPods()
    for moment, name, namespace, cause in (
        (10.0, "a", "team", "memory"),
        (20.0, "b", "team", "memory"),
        (30.0, "c", "team", "cores"),
        (40.0, "d", "other", "memory"),
    ):
        unplaced.observe(bench.parse(pod(name, namespace)), cause, moment)
    assert unplaced.groups(50.0) == {
        ("team", "memory"): UnplacedGroup(2, 40.0),
        ("team", "cores"): UnplacedGroup(1, 20.0),
        ("other", "memory"): UnplacedGroup(1, 10.0),
    }


def test_a_pod_counts_from_its_first_refusal_under_its_last_cause(bench: Bench) -> None:
    unplaced, one = UnplacedPods(), bench.parse(pod("a"))
    unplaced.observe(one, "memory", 10.0)
    unplaced.observe(one, "cores", 60.0)
    assert unplaced.groups(100.0) == {("default", "cores"): UnplacedGroup(1, 90.0)}
    unplaced.observe(one, "", 110.0)
    assert unplaced.groups(110.0) == {}
    unplaced.observe(one, "memory", 120.0)
    assert unplaced.groups(125.0) == {("default", "memory"): UnplacedGroup(1, 5.0)}
    unplaced.forget("uid-of-a")
    assert unplaced.groups(125.0) == {}


def test_a_pod_that_is_not_tried_any_more_is_forgotten(bench: Bench) -> None:
    unplaced = UnplacedPods()
    unplaced.observe(bench.parse(pod("a")), "memory", 0.0)
    assert unplaced.groups(FORGOTTEN_AFTER_S)
    assert not unplaced.groups(FORGOTTEN_AFTER_S + 1)


def test_the_number_of_pods_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unplaced_pods, "MOST_UNPLACED", 2)
    unplaced = UnplacedPods()
    for moment, name in enumerate("abc"):
        unplaced.observe(bench.parse(pod(name)), "memory", float(moment))
    assert unplaced.groups(3.0) == {("default", "memory"): UnplacedGroup(2, 2.0)}
