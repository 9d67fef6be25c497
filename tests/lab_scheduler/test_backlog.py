"""Who is next, and when a pod that fitted nowhere is tried again."""

from typing import Any

import pytest

from lamina.lab.scheduler.backlog import Backlog, Waiting
from lamina.lab.scheduler.hopes import asks_anew, may_help, may_take
from lamina.ports.kube import GRANTS, INVENTORIES, NODES


def pod(name: str, priority: int = 0, born: str = "2027-01-15T08:00:00Z") -> dict[str, Any]:
    meta = {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": born}
    return {"metadata": meta, "spec": {"priority": priority}}


def taken(backlog: Backlog, now: float) -> Waiting:
    entry = backlog.take(now)
    assert entry is not None
    return entry


def name(entry: Waiting) -> str:
    return str(entry.pod["metadata"]["name"])


def test_priority_then_age_then_arrival() -> None:
    backlog = Backlog()
    for each in (pod("c"), pod("d"), pod("b", born="2027-01-15T07:59:59Z"), pod("a", priority=1)):
        backlog.put(each, helps=True)
    assert [name(taken(backlog, 0)) for _ in range(4)] == ["a", "b", "c", "d"]
    assert backlog.take(0) is None


def test_back_off_doubles_from_one_to_ten_seconds() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), helps=True)
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
    backlog.put(pod("a"), helps=True)
    for now in (0.0, 1.0, 3.0):
        backlog.park(taken(backlog, now), now)
    backlog.something_happened()
    backlog.park(taken(backlog, 3.1), 3.1)
    assert backlog.next_due() == 4.1


def test_what_happens_while_a_pod_is_tried_is_not_missed() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), helps=True)
    entry = taken(backlog, 0)
    backlog.something_happened()
    backlog.park(entry, 0)
    assert backlog.take(0) is entry
    backlog.put(pod("a", priority=3), helps=True)
    backlog.park(entry, 0)
    assert taken(backlog, 0).pod["spec"]["priority"] == 3


def test_an_error_waits_whatever_happened_meanwhile() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), helps=True)
    entry = taken(backlog, 0)
    backlog.something_happened()
    backlog.park(entry, 0, error=True)
    assert backlog.take(0) is None
    backlog.something_happened(only=lambda each: each.error)
    assert backlog.take(0) is entry


def test_a_pod_that_is_gone_does_not_come_back() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), helps=True)
    entry = taken(backlog, 0)
    assert backlog.holds("a")
    backlog.drop("a")
    backlog.park(entry, 0)
    assert not backlog.holds("a")
    assert backlog.take(100) is None


def test_a_change_that_does_not_help_leaves_the_back_off() -> None:
    backlog = Backlog()
    backlog.put(pod("a"), helps=True)
    backlog.park(taken(backlog, 0), 0)
    backlog.put(pod("a"), helps=False)
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
    assert may_help(NODES, None, node())
    assert may_help(NODES, node(), node(allocatable={"cpu": "2"}))
    assert may_help(NODES, node(conditions=lost), node())
    assert not may_help(NODES, node(), node(conditions=beat))
    assert not may_help(NODES, node(), None)
    assert may_help(INVENTORIES, grant, {**grant, "spec": {}})
    assert not may_help(INVENTORIES, grant, dict(grant))
    assert may_help(GRANTS, grant, None)
    assert not may_help(GRANTS, None, grant)


@pytest.mark.parametrize(
    ("there", "taken"),
    [({}, False), ({"nvidia.com/gpu": "1"}, False), ({"nvidia.com/gpumem": "3k"}, False),
     ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2999"}, False),
     ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k"}, True)],
)  # fmt: skip
def test_a_node_gives_hope_where_it_has_all_that_the_pod_names(there: dict[str, str], taken: bool) -> None:
    """Kube-scheduler's queueing hint looks for what an extender manages as well."""
    asking = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}}}]}}
    assert may_take(NODES, node(allocatable=there), asking) == taken
    assert may_take(GRANTS, None, asking)


def test_a_pods_own_status_gives_no_hope() -> None:
    waiting = pod("a")
    said = {**waiting, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
    assert not asks_anew(waiting, said)
    assert asks_anew(None, waiting)
    assert asks_anew(waiting, {**waiting, "spec": {"priority": 1}})
    assert asks_anew(waiting, {**waiting, "metadata": {**waiting["metadata"], "annotations": {"a": "b"}}})
