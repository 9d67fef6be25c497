"""Who is next, and when a pod that fitted nowhere is tried again."""

from typing import Any

import pytest

from lamina.ports.kube import GRANTS, INVENTORIES, NODES
from lamina_lab.scheduler.queue.backlog import Backlog, WaitingPod
from lamina_lab.scheduler.queue.requeue import could_hold_pod, may_unblock_pods, needs_another_attempt


def pod(name: str, priority: int = 0, born: str = "2027-01-15T08:00:00Z") -> dict[str, Any]:
    meta = {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": born}
    return {"metadata": meta, "spec": {"priority": priority}}


def taken(backlog: Backlog, now: float) -> WaitingPod:
    entry = backlog.take(now)
    assert entry is not None
    return entry


def name(entry: WaitingPod) -> str:
    return str(entry.pod["metadata"]["name"])


def test_priority_then_age_then_arrival() -> None:
    backlog = Backlog()
    for each in (pod("c"), pod("d"), pod("b", born="2027-01-15T07:59:59Z"), pod("a", priority=1)):
        backlog.put(each, retry_now=True)
    assert [name(taken(backlog, 0)) for _ in range(4)] == ["a", "b", "c", "d"]
    assert backlog.take(0) is None


def test_back_off_doubles_from_one_to_ten_seconds() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), retry_now=True)
    now, waits = 0.0, []
    for _ in range(6):
        backlog.park(taken(backlog, now), now)
        due = backlog.next_due()
        assert due is not None
        assert backlog.take(due - 0.001) is None
        waits.append(due - now)
        now = due
    assert waits == [1, 2, 4, 8, 10, 10]


def test_something_helpful_brings_parked_pods_back_at_once_and_starts_the_back_off_again() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), retry_now=True)
    for now in (0.0, 1.0, 3.0):
        backlog.park(taken(backlog, now), now)
    backlog.retry_parked()
    backlog.park(taken(backlog, 3.1), 3.1)
    assert backlog.next_due() == 4.1


def test_what_happens_while_a_pod_is_tried_is_not_missed() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), retry_now=True)
    entry = taken(backlog, 0)
    backlog.retry_parked()
    backlog.park(entry, 0)
    assert backlog.take(0) is entry
    backlog.put(pod("a", priority=3), retry_now=True)
    backlog.park(entry, 0)
    assert taken(backlog, 0).pod["spec"]["priority"] == 3


def test_an_error_waits_whatever_happened_meanwhile() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), retry_now=True)
    entry = taken(backlog, 0)
    backlog.retry_parked()
    backlog.park(entry, 0, error=True)
    assert backlog.take(0) is None
    backlog.retry_parked(only=lambda each: each.error)
    assert backlog.take(0) is entry


def test_a_pod_that_is_gone_does_not_come_back() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), retry_now=True)
    entry = taken(backlog, 0)
    assert backlog.holds("a")
    backlog.drop("a")
    backlog.park(entry, 0)
    assert not backlog.holds("a")
    assert backlog.take(100) is None


def test_a_change_that_does_not_help_leaves_the_back_off() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), retry_now=True)
    backlog.park(taken(backlog, 0), 0)
    backlog.put(pod("a"), retry_now=False)
    assert backlog.take(0) is None


def node(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "resourceVersion": str(id(status)), "labels": {"a": "b"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}], **status},
    }


def test_which_changes_give_hope() -> None:
    beat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "later"}]
    lost = [{"type": "Ready", "status": "Unknown"}]
    grant = {"metadata": {}, "spec": {"node": "n"}}
    assert may_unblock_pods(NODES, None, node())
    assert may_unblock_pods(NODES, node(), node(allocatable={"cpu": "2"}))
    assert may_unblock_pods(NODES, node(conditions=lost), node())
    assert not may_unblock_pods(NODES, node(), node(conditions=beat))
    assert not may_unblock_pods(NODES, node(), None)
    assert may_unblock_pods(INVENTORIES, grant, {**grant, "spec": {}})
    assert not may_unblock_pods(INVENTORIES, grant, dict(grant))
    assert may_unblock_pods(GRANTS, grant, None)
    assert not may_unblock_pods(GRANTS, None, grant)


@pytest.mark.parametrize(
    ("there", "taken"),
    [({}, False), ({"nvidia.com/gpu": "1"}, False), ({"nvidia.com/gpumem": "3k"}, False),
     ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2999"}, False),
     ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k"}, True)],
)  # fmt: skip
def test_a_node_gives_hope_where_it_has_all_that_the_pod_names(there: dict[str, str], taken: bool) -> None:
    """Kube-scheduler's queueing hint looks for what an extender manages as well."""
    asking = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}}}]}}
    assert could_hold_pod(NODES, node(allocatable=there), asking, ()) == taken
    assert could_hold_pod(GRANTS, None, asking, ())


@pytest.mark.parametrize(
    ("there", "taken"),
    [({}, False), ({"nvidia.com/gpumem": "3k"}, True), ({"nvidia.com/gpu": "0", "nvidia.com/gpumem": "3k"}, True),
     ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k"}, False)],
)  # fmt: skip
def test_a_claim_could_provide_what_a_node_has_none_of(there: dict[str, str], taken: bool) -> None:
    """Where a node has some of the resource, its device plugin provides all of it or the pod does not fit."""
    asking = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000"}}}]}}
    assert could_hold_pod(NODES, node(allocatable=there), asking, {"nvidia.com/gpu"}) == taken


def test_a_pods_own_status_does_not_cause_another_attempt() -> None:
    waiting = pod("a")
    refused = {**waiting, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
    assert not needs_another_attempt(waiting, refused)
    assert needs_another_attempt(None, waiting)
    assert needs_another_attempt(waiting, {**waiting, "spec": {"priority": 1}})
    assert needs_another_attempt(waiting, {**waiting, "metadata": {**waiting["metadata"], "annotations": {"a": "b"}}})
