"""A fraction of a GPU in a template: written so that the API server takes it, and understood after later changes."""

import copy
from typing import Any

import jsonpatch
import msgspec
import pytest

from lamina.control.admission import Asked, is_workload, review_template
from lamina.control.webhook_configuration import template_expression, webhook_configuration
from lamina.dialects import defaults, parse, template_fills, unseen_by_admission
from lamina.dialects.cce import PERCENTAGE
from lamina.dialects.config import DEFAULT, Config, load
from lamina.dialects.templates import WORKLOADS
from lamina.errors import BadInput
from tests.control.test_webhook_configuration import holds
from tests.dialects.pods import container, pod

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem-percentage"
KINDS = [(group, plural) for group, plurals in WORKLOADS.items() for plural in plurals]


def amounts(limits: dict[str, Any], requests: dict[str, Any] | None = None) -> dict[str, Any]:
    """A container's spec."""
    made = container(**limits)
    if requests is not None:
        made["resources"]["requests"] = requests
    return made


def workload(*containers: dict[str, Any], plural: str = "deployments", **spec: Any) -> dict[str, Any]:
    of_pod = pod(*containers, **spec)
    template = {"template": {"metadata": {}, "spec": of_pod["spec"]}}
    return {
        "metadata": {"name": "w"},
        "spec": {"jobTemplate": {"spec": template}} if plural == "cronjobs" else template,
    }


def template(of: dict[str, Any]) -> dict[str, Any]:
    spec = of["spec"].get("jobTemplate", of)["spec"] if "jobTemplate" in of["spec"] else of["spec"]
    found: dict[str, Any] = spec["template"]
    return found


def asked(of: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template(of)["spec"]["containers"][0]["resources"]
    return found


def admitted(of: dict[str, Any], config: Config = DEFAULT) -> dict[str, Any]:
    """The workload as the API server stores it; what is not sent to admission stays."""
    if not holds(template_expression(config), of):
        assert template_fills(of, config) == (), "whatever has to be changed is sent"
        return of
    changed: dict[str, Any] = jsonpatch.apply_patch(of, [fill.operation for fill in template_fills(of, config)])
    assert template_fills(changed, config) == ()
    return changed


def normal(percent: int) -> dict[str, str]:
    return {GPU: "0", PERCENTAGE: str(percent)}


@pytest.mark.parametrize(("group", "plural"), KINDS)
def test_s0_10_a_fraction_is_written_anew_in_every_kind_of_workload(group: str, plural: str) -> None:
    made = admitted(workload(container(**{GPU: "100m"}), plural=plural))
    assert asked(made) == {"limits": normal(10)}
    review = {"uid": "1", "object": made, "operation": "UPDATE", "resource": {"group": group, "resource": plural}}
    assert is_workload(msgspec.convert(review, Asked))
    registered = webhook_configuration(DEFAULT, {}, b"")["webhooks"][1]["rules"]
    assert any(group in rule["apiGroups"] and plural in rule["resources"] for rule in registered)


@pytest.mark.parametrize("percent", range(1, 100))
def test_every_fraction_becomes_the_pod_that_it_would_be_without_a_template(percent: int) -> None:
    made = admitted(workload(amounts({GPU: f"{percent * 10}m"}, {GPU: f"{percent * 10}m"})))
    assert asked(made) == {"limits": normal(percent), "requests": {GPU: "0"}}
    of_template = template(made)
    born = {"metadata": {"name": "p"}, "spec": copy.deepcopy(of_template["spec"])}
    resources = born["spec"]["containers"][0]["resources"]
    resources["requests"] = {**resources["limits"], **resources["requests"]}  # as the API server fills pods in
    alone = parse(pod(container(**{GPU: f"0.{percent:02d}"})), DEFAULT)
    before = parse(born, DEFAULT)
    assert before is not None and before == alone
    assert "names no nvidia.com/gpu" in unseen_by_admission(born, before, DEFAULT)
    after = jsonpatch.apply_patch(born, [fill.operation for fill in defaults(born, DEFAULT)])
    assert after["spec"]["containers"][0]["resources"] == {
        "limits": {GPU: "1", MEMORY: str(percent)}, "requests": {GPU: "1"},
    }  # fmt: skip
    assert parse(after, DEFAULT) == before
    assert unseen_by_admission(after, before, DEFAULT) == ""


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({}, normal(10)),
        ({GPU: "100m"}, normal(10)),
        ({GPU: "200m"}, normal(20)),
        ({GPU: "1"}, {GPU: "1"}),
        ({GPU: "2", "nvidia.com/gpumem": "1k"}, {GPU: "2", "nvidia.com/gpumem": "1k"}),
        ({GPU: "1", MEMORY: "10"}, {GPU: "1", MEMORY: "10"}),
        ({GPU: None}, {}),
        ({GPU: None, MEMORY: "30"}, {MEMORY: "30"}),
        ({PERCENTAGE: None}, {GPU: "0"}),
    ],
    ids=str,
)
def test_a_change_of_what_is_stored_means_what_it_says(change: dict[str, str | None], result: dict[str, str]) -> None:
    """`change` is a merge patch, as kubectl apply makes it from what people changed in their manifest."""
    stored = admitted(workload(container(**{GPU: "0.1"})))
    limits = asked(stored)["limits"]
    for name, value in change.items():
        limits.pop(name, None)
        if value is not None:
            limits[name] = value
    assert asked(admitted(stored))["limits"] == result


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({GPU: "125m"}, "allowed is a whole number from 1 or a fraction from 0.01 to 0.99"),
        ({GPU: "1500m"}, "nvidia.com/gpu is '1500m'; allowed is a whole number from 1"),
        ({GPU: "100m", MEMORY: "10"}, "a fraction of a GPU stands alone"),
        ({GPU: "100m", "nvidia.com/gpucores": "10"}, "a fraction of a GPU stands alone"),
        ({GPU: "-100m"}, "nvidia.com/gpu is '-100m'; allowed is a whole number from 1"),
    ],
    ids=str,
)
def test_what_is_no_fraction_is_refused(limits: dict[str, str], sentence: str) -> None:
    verdict = review_template(workload(container(**limits)), DEFAULT)
    assert not verdict.allowed and sentence in verdict.message
    assert holds(template_expression(DEFAULT), workload(container(**limits)))


def test_an_unequal_request_is_refused() -> None:
    with pytest.raises(BadInput, match="make them equal"):
        template_fills(workload(amounts({GPU: "100m"}, {GPU: "200m"})), DEFAULT)


@pytest.mark.parametrize("limits", [{}, {"cpu": "500m"}, {GPU: "1"}, {GPU: "0"}, normal(10), {GPU: "1", MEMORY: "5"}])
def test_other_workloads_are_not_sent(limits: dict[str, str]) -> None:
    for made in (workload(container(**limits)), workload(container(), init=(container("i", **limits),))):
        assert not holds(template_expression(DEFAULT), made)
        assert template_fills(made, DEFAULT) == ()


def test_init_containers_are_written_anew_too_and_requests_alone() -> None:
    made = workload(amounts({}, {GPU: "500m"}), init=(container("i", **{GPU: "100m"}),))
    del template(made)["spec"]["containers"][0]["resources"]["limits"]
    made = admitted(made)
    assert asked(made) == {"limits": normal(50), "requests": {GPU: "0"}}
    assert template(made)["spec"]["initContainers"][0]["resources"]["limits"] == normal(10)


def test_pods_of_other_schedulers_are_left_alone() -> None:
    assert template_fills(workload(container(**{GPU: "0.1"}), schedulerName="somebody"), DEFAULT) == ()


def test_the_name_of_the_count_is_the_configured_one() -> None:
    config = load("resourceName: example.com/gpu", "c")
    made = admitted(workload(container(**{"example.com/gpu": "0.1"})), config)
    assert asked(made)["limits"] == {"example.com/gpu": "0", PERCENTAGE: "10"}
