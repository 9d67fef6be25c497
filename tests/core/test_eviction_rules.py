"""Whom the controller may evict: no pod by default, and then those of the namespaces that the configuration names."""

import pytest

from lamina.core.evictions import Borrowers, GrantlessPods, IdleShares
from lamina.core.gpus import Inventory, NativeResource


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        (Borrowers(namespaces=("*",)), False),
        (Borrowers(seconds=1, namespaces=("*",)), True),
        (Borrowers(seconds=1, namespaces=("team",)), True),
        (Borrowers(seconds=1, namespaces=("other",)), False),
        (Borrowers(seconds=1), False),
        (IdleShares(namespaces=("*",)), False),
        (IdleShares(hours=1, namespaces=("*",)), True),
        (IdleShares(hours=1, namespaces=("other",)), False),
    ],
)
def test_a_rule_covers_a_namespace_that_it_names_once_it_has_a_time(
    rule: Borrowers | IdleShares, covered: bool
) -> None:
    assert rule.covers("team") is covered


@pytest.mark.parametrize(
    ("rule", "since_s", "evicted"),
    [
        (GrantlessPods(seconds=60), 59.0, False),
        (GrantlessPods(seconds=60), 60.0, True),
        (GrantlessPods(seconds=60, exempt=("team",)), 60.0, False),
        (GrantlessPods(seconds=60, exempt=("other",)), 60.0, True),
        (GrantlessPods(seconds=0), 0.0, False),
        (GrantlessPods(seconds=0), 1e9, False),
    ],
)
def test_a_pod_without_a_grant_is_evicted_at_its_time(rule: GrantlessPods, since_s: float, evicted: bool) -> None:
    assert rule.evicts("team", since_s) is evicted


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [(["a"], True), (["a", "b"], True), (["a", "c"], False), ([], False)],
)
def test_a_node_offers_native_devices_if_it_has_all_of_them(wanted: list[str], offered: bool) -> None:
    resources = tuple(NativeResource(resource=name, count=1) for name in ("a", "b"))
    assert Inventory(node="n", native_resources=resources).offers_native_devices(wanted) is offered
