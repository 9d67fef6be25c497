"""4paradigm's two names for cores: either is the one that is configured, before and after admission."""

from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from msgspec import structs

from lamina.admission.review import review
from lamina.configuration import DEFAULT, Config, load
from lamina.dialects import parse, template_warnings
from lamina.errors import BadInput
from tests.dialects.pods import Pod, container, pod

FIRST, SECOND = "nvidia.com/gpucores", "nvidia.com/cores"
ROOT = Path(__file__).parents[2]
LISTED = load((ROOT / "examples" / "configuration" / "4paradigm.yaml").read_text(), "c")
"""The options as 4paradigm's document lists them, with the second name."""
CONFIGS = [(DEFAULT, FIRST), (LISTED, SECOND)]


def asking(**amounts: str) -> Pod:
    both = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", **amounts}
    return pod({"name": "main", "image": "x", "resources": {"limits": both, "requests": dict(both)}})


def admitted(manifest: Pod, config: Config) -> dict[str, Any]:
    verdict, _ = review(manifest, config)
    assert verdict.allowed, verdict.message
    changed: Pod = jsonpatch.apply_patch(manifest, list(verdict.patch))
    assert parse(changed, config) == parse(manifest, config)
    resources: dict[str, Any] = changed["spec"]["containers"][0]["resources"]
    return resources


@pytest.mark.parametrize(("config", "name"), CONFIGS)
@pytest.mark.parametrize("written", [FIRST, SECOND])
@pytest.mark.parametrize("amount", ["0", "30", "100"])
def test_s4_d_either_name_is_the_amount(config: Config, name: str, written: str, amount: str) -> None:
    manifest = asking(**{written: amount})
    found = parse(manifest, config)
    assert found is not None and found.containers[0].cores == int(amount)
    resources = admitted(manifest, config)
    assert resources["limits"][name] == resources["requests"][name] == amount
    assert {FIRST, SECOND} & resources["limits"].keys() == {FIRST, SECOND} & resources["requests"].keys() == {name}
    workload = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": manifest}}
    assert template_warnings(workload, "default", config) == found.warnings


@pytest.mark.parametrize(("config", "name"), CONFIGS)
def test_both_names_in_one_container_are_refused(config: Config, name: str) -> None:
    with pytest.raises(BadInput, match=r'container "main": .* and .* are names of one amount; request one of them'):
        parse(asking(**{FIRST: "10", SECOND: "10"}), config)


def test_each_container_may_have_its_own() -> None:
    found = parse(pod(container("a", **{"gpu": 1, FIRST: 10}), container("b", **{"gpu": 1, SECOND: 20})), DEFAULT)
    assert found is not None and [each.cores for each in found.containers] == [10, 20]


def test_where_the_name_is_of_neither_kind_nothing_else_is_meant() -> None:
    """HAMi itself may serve its names in the same cluster."""
    own = load("hami: {resourceCoreName: example.com/cores}", "c")
    with pytest.raises(BadInput, match=r"unknown resource nvidia\.com/cores"):
        parse(asking(**{SECOND: "10"}), own)


def test_a_pod_that_is_served_by_a_claim_keeps_none_of_them() -> None:
    always = structs.replace(DEFAULT, admission=structs.replace(DEFAULT.admission, by_claim="always"))
    manifest = asking(**{SECOND: "30"})
    verdict, _ = review(manifest, always)
    changed = jsonpatch.apply_patch(manifest, list(verdict.patch))
    assert changed["spec"]["resourceClaims"] and "cores" not in str(changed["spec"]["containers"])
