"""What is told of quotas, against what is written in them."""

from typing import Any

import pytest

from lamina.control.ledger import Ledger
from lamina.control.metrics_of_quotas import families
from lamina.control.quotas import Quotas
from lamina.dialects import config


def told(text: str = "", **hard: Any) -> dict[tuple[str, ...], float]:
    quotas = Quotas()
    quotas.seen({"metadata": {"namespace": "team", "name": "q"}, "spec": {"hard": hard}})
    return {
        (family.name, *(each.labels[key] for key in ("namespace", "quota_name", "limit"))): each.value
        for family in families(quotas, Ledger(), config.load(text, "test"))
        for each in family.samples
    }


def test_a_quota_is_told_by_the_resource_that_it_limits() -> None:
    found = told(**{"limits.nvidia.com/gpumem": "20k", "limits.nvidia.com/gpucores": 200, "limits.cpu": "4"})
    assert found == {
        ("hami_resource_quota_used", "team", "nvidia.com/gpumem", "20k"): 0,
        ("hami_resource_quota_limit", "team", "nvidia.com/gpumem", "20k"): 20000,
        ("hami_resource_quota_used", "team", "nvidia.com/gpucores", "200"): 0,
        ("hami_resource_quota_limit", "team", "nvidia.com/gpucores", "200"): 200,
    }


@pytest.mark.parametrize("written", ["nonsense", "-"])
def test_what_cannot_be_understood_is_left_out(written: str) -> None:
    assert told(**{"limits.nvidia.com/gpumem": written}) == {}
