"""Rows of cost from the figures of several nodes, and what they say where prices or accounts are missing."""

import pytest

from lamina.core.prices import GpuPrice, Pricing
from lamina.errors import BadInput
from lamina.operations.cost.accounts import ClusterAccounts
from lamina.operations.cost.rows import CostRow, cost_rows, idle_row
from tests.operations.cost.samples import account_samples

HOUR = 3600.0
PRICING = Pricing(gpus=(GpuPrice(model="T4", per_hour=2.0),), memory_percent=75, labels=("team",))


def accounts() -> ClusterAccounts:
    made = ClusterAccounts()
    for sample in (
        *account_samples("a", "web", memory_requested=2 * HOUR, compute_requested=HOUR, gib_used=HOUR),
        *account_samples("a", "web", memory_requested=HOUR, model="L4"),
        *account_samples("a", "job", memory_requested=HOUR, compute_requested=HOUR, compute_lent=HOUR),
        *account_samples("b", "web", memory_requested=HOUR),
        *account_samples("b", "", memory_requested=HOUR, past=True),
        *account_samples("a", "red", label="team", memory_requested=5 * HOUR),
        *account_samples("b", "red", label="team", memory_requested=HOUR),
    ):
        made.add(*sample)
    labels = {"model": "T4", "part": "memory", "figure": "idle"}
    made.add("lamina_gpu_seconds_total", labels, 4 * HOUR)
    made.add("lamina_gpu_seconds_total", labels | {"figure": "capacity"}, 9 * HOUR)
    return made


def test_a_row_for_each_namespace_with_what_is_gone() -> None:
    b, a = sorted(cost_rows(accounts(), PRICING, by="namespace"), key=lambda row: row.namespace == "a")
    assert b == CostRow(namespace="b", memory_requested=2, cost=3.0)
    assert (a.memory_requested, a.compute_requested, a.compute_lent, a.gib_used) == (4, 2, 1, 1)
    assert a.cost is None, "an L4 has no price"


def test_a_row_for_each_workload_the_dearest_first() -> None:
    rows = cost_rows(accounts(), PRICING, by="workload", namespace="b")
    assert [(row.kind, row.workload, row.cost) for row in rows] == [("Deployment", "web", 1.5), ("", "", 1.5)]


def test_a_row_for_each_value_of_a_label() -> None:
    assert cost_rows(accounts(), PRICING, by="label", label="team") == [
        CostRow(label="red", memory_requested=6, cost=9.0)
    ]


def test_a_label_without_accounts_is_refused() -> None:
    with pytest.raises(BadInput, match=r"'app' has no accounts; add it to pricing\.labels .*; it has team"):
        cost_rows(accounts(), PRICING, by="label", label="app")


def test_what_is_idle_costs_too() -> None:
    assert idle_row(accounts(), PRICING) == CostRow(memory_requested=4, cost=6.0)


def test_without_prices_nothing_has_a_cost() -> None:
    assert {row.cost for row in cost_rows(accounts(), Pricing(), by="workload")} == {None}
    assert idle_row(ClusterAccounts(), Pricing()).cost == 0
