"""What metrics say of quotas, against what is written in them."""

from typing import Any

import pytest

from lamina import configuration
from lamina.controller.compatibility import families
from lamina.ledger.ledger import Ledger
from lamina.ledger.quotas import ResourceQuotas


def reported(text: str = "", **hard: Any) -> dict[tuple[str, ...], float]:
    quotas = ResourceQuotas()
    quotas.observe({"metadata": {"namespace": "team", "name": "q"}, "spec": {"hard": hard}})
    return {
        (family.name, *each.labels.values()): each.value
        for family in families(Ledger(), quotas, configuration.load(text, "test"))
        for each in family.samples
    }


def test_a_quota_is_reported_by_the_resource_that_it_limits() -> None:
    found = reported(**{"limits.nvidia.com/gpumem": "20k", "limits.nvidia.com/gpucores": 200, "limits.cpu": "4"})
    assert found == {
        ("hami_resource_quota_used", "team", "nvidia.com/gpumem", "20k"): 0,
        ("hami_resource_quota_limit", "team", "nvidia.com/gpumem", "20k"): 20000,
        ("hami_resource_quota_used", "team", "nvidia.com/gpucores", "200"): 0,
        ("hami_resource_quota_limit", "team", "nvidia.com/gpucores", "200"): 200,
    }


@pytest.mark.parametrize("written", ["nonsense", "-"])
def test_what_cannot_be_understood_is_left_out(written: str) -> None:
    assert reported(**{"limits.nvidia.com/gpumem": written}) == {}
