"""Pods that fit nowhere are counted by namespace and cause, with the longest wait, until they have a node."""

import pytest

from lamina.controller.pending_pods import MAX_REFUSED_S, PendingPods, RefusedPods, refused_pods
from lamina.ports.kube import Object
from tests.controller.binders import Bench
from tests.worlds.objects import gpu_pod


def pod(name: str, namespace: str = "default") -> Object:
    made = gpu_pod(name, namespace=namespace, gpu=1)
    made["metadata"]["uid"] = f"uid-of-{name}"
    return made


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_pods_are_grouped_by_namespace_and_cause(bench: Bench) -> None:
    pending = PendingPods()
    for moment, name, namespace, cause in (
        (10.0, "a", "team", "memory"),
        (20.0, "b", "team", "memory"),
        (30.0, "c", "team", "cores"),
        (40.0, "d", "other", "memory"),
    ):
        pending.observe_try(bench.parse(pod(name, namespace)), cause, moment)
    assert refused_pods(pending, 50.0) == {
        ("team", "memory"): RefusedPods(2, 40.0),
        ("team", "cores"): RefusedPods(1, 20.0),
        ("other", "memory"): RefusedPods(1, 10.0),
    }


def test_a_pod_counts_from_its_first_refusal_under_its_last_cause(bench: Bench) -> None:
    pending, one = PendingPods(), bench.parse(pod("a"))
    pending.observe_try(one, "memory", 10.0)
    pending.observe_try(one, "cores", 60.0)
    assert refused_pods(pending, 100.0) == {("default", "cores"): RefusedPods(1, 90.0)}
    pending.observe_try(one, "", 110.0)
    assert refused_pods(pending, 110.0) == {}
    pending.observe_try(one, "memory", 120.0)
    assert refused_pods(pending, 125.0) == {("default", "memory"): RefusedPods(1, 5.0)}
    pending.forget("uid-of-a")
    assert refused_pods(pending, 125.0) == {}


def test_a_pod_that_is_no_longer_tried_is_not_pending(bench: Bench) -> None:
    pending = PendingPods()
    pending.observe_try(bench.parse(pod("a")), "memory", 0.0)
    assert refused_pods(pending, MAX_REFUSED_S)
    assert not refused_pods(pending, MAX_REFUSED_S + 1)
    pending.observe_try(bench.parse(pod("a")), "memory", 2 * MAX_REFUSED_S)
    assert refused_pods(pending, 2 * MAX_REFUSED_S + 1) == {("default", "memory"): RefusedPods(1, 1.0)}
