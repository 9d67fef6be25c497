"""Evictions that budgets do not allow are counted one after another."""

import pytest

from lamina.ledger.disruption import violations
from lamina.ports.kube import Object


def pod(name: str, namespace: str = "default", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels or {"app": "x"}}}


def budget(allowed: int, *disrupted: str, app: str = "x") -> Object:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2030-01-01T00:00:00Z")}
    meta = {"name": f"b-{app}", "namespace": "default"}
    return {"metadata": meta, "spec": {"selector": {"matchLabels": {"app": app}}}, "status": status}


@pytest.mark.parametrize(
    ("pods", "budgets", "count"),
    [
        ([pod("a"), pod("b")], [budget(2)], 0),
        ([pod("a"), pod("b")], [budget(1)], 1),
        ([pod("a"), pod("b")], [budget(0)], 2),
        ([pod("a"), pod("b")], [budget(0), budget(1)], 2),
        ([pod("a"), pod("b")], [budget(0, "a")], 1),
        ([pod("a", app="y"), pod("b", namespace="other")], [budget(0)], 0),
        ([pod("a")], [{"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {}}}], 1),
    ],
)
def test_what_exceeds_a_budget_counts_once(pods: list[Object], budgets: list[Object], count: int) -> None:
    assert violations(pods, budgets) == count
