"""A fraction of a GPU in a template: in a form that the API server accepts, and still valid after later changes."""

import copy
from typing import Any

import jsonpatch
import msgspec
import pytest

from lamina.admission.review import ALLOWED, AdmissionRequest, is_workload, review_template
from lamina.admission.webhook_configuration import template_expression, webhook_configuration
from lamina.configuration import DEFAULT, Config, load
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.dialects import explain_missing_defaults, fill_template, parse
from lamina.dialects.hami.fractions import PERCENTAGE
from lamina.dialects.templates import WORKLOADS, template_warnings
from lamina.errors import BadInput
from tests.controller.match_expressions import holds
from tests.dialects.pods import changes_of, container, pod

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
        assert fill_template(of, config) == (), "whatever has to be changed is sent"
        return of
    changed: dict[str, Any] = jsonpatch.apply_patch(of, [change.to_json() for change in fill_template(of, config)])
    assert fill_template(changed, config) == ()
    return changed


def normal(percent: int) -> dict[str, str]:
    return {GPU: "0", PERCENTAGE: str(percent)}


@pytest.mark.parametrize(("group", "plural"), KINDS)
def test_s0_10_a_fraction_is_rewritten_in_every_kind_of_workload(group: str, plural: str) -> None:
    made = admitted(workload(container(**{GPU: "100m"}), plural=plural))
    assert asked(made) == {"limits": normal(10)}
    review = {"uid": "1", "object": made, "operation": "UPDATE", "resource": {"group": group, "resource": plural}}
    assert is_workload(msgspec.convert(review, AdmissionRequest))
    registered = webhook_configuration(DEFAULT, {}, b"", namespace=DEFAULT_NAMESPACE)["webhooks"][1]["rules"]
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
    assert "nvidia.com/gpu is missing" in explain_missing_defaults(born, before, DEFAULT)
    after = jsonpatch.apply_patch(born, [change.to_json() for change in changes_of(born, DEFAULT)])
    assert after["spec"]["containers"][0]["resources"] == {
        "limits": {GPU: "1", MEMORY: str(percent)}, "requests": {GPU: "1"},
    }  # fmt: skip
    assert parse(after, DEFAULT) == before
    assert explain_missing_defaults(after, before, DEFAULT) == ""


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
def test_a_change_of_a_stored_template_is_understood(change: dict[str, str | None], result: dict[str, str]) -> None:
    """`change` is a merge patch, as kubectl apply makes it from a changed manifest."""
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
        ({GPU: "125m"}, "must be an integer from 1 to 1024 or a fraction from 0.01 to 0.99, got 125m"),
        ({GPU: "1500m"}, "nvidia.com/gpu must be an integer from 1 to 1024, got 1500m"),
        ({GPU: "100m", MEMORY: "10"}, f"must be an integer if {MEMORY} is requested too, got 100m"),
        ({GPU: "100m", "nvidia.com/gpucores": "10"}, "must be an integer if nvidia.com/gpucores is requested too"),
        ({GPU: "-100m"}, "nvidia.com/gpu must be an integer from 1 to 1024, got -100m"),
    ],
    ids=str,
)
def test_other_fractions_are_refused(limits: dict[str, str], sentence: str) -> None:
    verdict = review_template(workload(container(**limits)), "default", DEFAULT)
    assert not verdict.allowed and sentence in verdict.message
    assert holds(template_expression(DEFAULT), workload(container(**limits)))


def test_an_unequal_request_is_refused() -> None:
    with pytest.raises(BadInput, match="must have a request equal to its limit 100m, got 200m"):
        fill_template(workload(amounts({GPU: "100m"}, {GPU: "200m"})), DEFAULT)


@pytest.mark.parametrize("limits", [{}, {"example.com/gpu": "1"}])
def test_other_workloads_are_not_sent(limits: dict[str, str]) -> None:
    for made in (workload(container(**limits)), workload(container(), init=(container("i", **limits),))):
        assert not holds(template_expression(DEFAULT), made)
        assert fill_template(made, DEFAULT) == ()


@pytest.mark.parametrize("limits", [{GPU: "1"}, {GPU: "0"}, normal(10), {GPU: "1", MEMORY: "5"}])
def test_a_template_with_valid_amounts_is_not_changed(limits: dict[str, str]) -> None:
    made = workload(container(**limits))
    assert review_template(made, "default", DEFAULT) == ALLOWED


@pytest.mark.parametrize("plural", ["deployments", "jobs", "cronjobs", "statefulsets"])
@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({GPU: "1", MEMORY: "150"}, f"{MEMORY} must be an integer from 1 to 100, got 150"),
        ({"nvidia.com/gpumem": "10Gi"}, "must be an integer in MiB without a unit; for 10Gi, write 10240, got 10Gi"),
        ({"nvidia.com/gpu-mem": "1"}, "unknown resource nvidia.com/gpu-mem; did you mean nvidia.com/gpumem?"),
    ],
)
def test_a_workload_whose_pods_will_be_refused_is_admitted_with_a_warning(
    plural: str, limits: dict[str, str], sentence: str
) -> None:
    made = workload(container(**limits), plural=plural)
    assert holds(template_expression(DEFAULT), made)
    verdict = review_template(made, "default", DEFAULT)
    assert verdict.allowed and not verdict.patch
    (warning,) = verdict.warnings
    assert warning.startswith('its pods will be refused: container "main": ') and warning.endswith(sentence)


def test_a_workload_of_another_scheduler_is_not_checked() -> None:
    made = workload(container(**{GPU: "1", MEMORY: "150"}), schedulerName="other")
    (warning,) = review_template(made, "default", DEFAULT).warnings
    assert warning.startswith("schedulerName other is not in schedulers.served, so Lamina does not place this pod")
    assert review_template(workload(container(**{GPU: "1"}), schedulerName="other"), "default", DEFAULT) == ALLOWED


@pytest.mark.parametrize(("namespace", "warnings"), [("default", 1), ("urgent", 0)])
def test_a_priority_that_the_namespace_may_not_have_is_a_warning(namespace: str, warnings: int) -> None:
    config = load("sharing: {highPriorityNamespaces: [urgent]}", "c")
    made = workload(container(**{GPU: "1", "nvidia.com/gpumem": "1000", "nvidia.com/priority": "0"}))
    assert len(review_template(made, namespace, config).warnings) == warnings


def test_init_containers_and_bare_requests_are_rewritten_too() -> None:
    made = workload(amounts({}, {GPU: "500m"}), init=(container("i", **{GPU: "100m"}),))
    del template(made)["spec"]["containers"][0]["resources"]["limits"]
    made = admitted(made)
    assert asked(made) == {"limits": normal(50), "requests": {GPU: "0"}}
    assert template(made)["spec"]["initContainers"][0]["resources"]["limits"] == normal(10)


def test_pods_of_other_schedulers_are_not_changed() -> None:
    assert fill_template(workload(container(**{GPU: "0.1"}), schedulerName="other"), DEFAULT) == ()


def test_the_name_of_the_count_is_the_configured_one() -> None:
    config = load("resourceName: example.com/gpu", "c")
    made = admitted(workload(container(**{"example.com/gpu": "0.1"})), config)
    assert asked(made)["limits"] == {"example.com/gpu": "0", PERCENTAGE: "10"}


def test_a_template_whose_annotations_request_gpus_is_sent_and_its_mistakes_are_warned_of() -> None:
    made = workload(container())
    template(made)["metadata"] = {"annotations": {"gpu-memory": "2Gi"}}
    template(made)["spec"]["schedulerName"] = "kai-scheduler"
    assert holds(template_expression(DEFAULT), made)
    assert "its pods will be refused: annotation gpu-memory must be" in template_warnings(made, "default", DEFAULT)[0]
    template(made)["metadata"] = {"annotations": {"memory": "2Gi"}}
    assert not holds(template_expression(DEFAULT), made)
