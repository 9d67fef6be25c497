"""Pods that get a claim in the place of their resources: which of them, and what admission changes."""

from typing import Any

import jsonpatch
import pytest
from msgspec import structs

from lamina.admission.review import AdmissionRequest, new_pod, review
from lamina.configuration import DEFAULT, Config
from lamina.core.field_types import ByClaimRule
from lamina.dialects import parse, served_by_claim, ticket_holders
from lamina.dialects.by_claim import ASKED, ENTRY, GENERATED
from lamina.dra.generated import read_generated, template_spec
from tests.dialects.pods import Pod, asking, container, pod

YES, NO = {ASKED: "true"}, {ASKED: "false"}


def config(rule: ByClaimRule = "asked") -> Config:
    return structs.replace(DEFAULT, admission=structs.replace(DEFAULT.admission, by_claim=rule))


def admitted(manifest: Pod, rule: ByClaimRule = "asked") -> tuple[Pod, tuple[str, ...]]:
    """The pod as it is created, and the warnings."""
    verdict, _ = review(manifest, config(rule))
    assert verdict.allowed, verdict.message
    changed: Pod = jsonpatch.apply_patch(manifest, list(verdict.patch))
    return changed, verdict.warnings


def refusal(manifest: Pod, rule: ByClaimRule = "asked") -> str:
    verdict, _ = review(manifest, config(rule))
    assert not verdict.allowed
    return verdict.message


def has_claim(manifest: Pod) -> bool:
    return bool(manifest["spec"].get("resourceClaims"))


@pytest.mark.parametrize(
    ("rule", "annotations", "expected"),
    [
        ("never", {}, False),
        ("never", NO, False),
        ("asked", {}, False),
        ("asked", NO, False),
        ("asked", YES, True),
        ("always", {}, True),
        ("always", NO, False),
        ("always", YES, True),
    ],
)
def test_the_configuration_and_the_pod_decide(rule: ByClaimRule, annotations: dict[str, str], expected: bool) -> None:
    manifest = pod(container(gpu=1, gpumem=1000), annotations=annotations)
    assert has_claim(admitted(manifest, rule)[0]) is expected


def test_a_pod_that_asks_where_no_claims_are_made_is_refused() -> None:
    text = refusal(pod(container(gpu=1, gpumem=1000), annotations=YES), "never")
    assert text == f"annotation {ASKED}: this cluster makes no claims for pods; remove the annotation"
    assert "must be true or false, got 'maybe'" in refusal(
        pod(container(gpu=1, gpumem=1000), annotations={ASKED: "maybe"})
    )


def test_resources_go_and_containers_name_their_requests() -> None:
    main, side = container("main", gpu=1, gpumem=1000, gpucores=30), container("side", gpu=1, gpumem=500)
    main["resources"]["limits"]["cpu"] = "1"
    main["resources"]["requests"] = {"nvidia.com/gpu": 1, "memory": "1Gi"}
    idle = container("idle", gpu=0)
    changed, _ = admitted(pod(main, side, idle, annotations=YES))
    found = {each["name"]: each["resources"] for each in changed["spec"]["containers"]}
    assert found["main"] == {
        "limits": {"cpu": "1"},
        "requests": {"memory": "1Gi"},
        "claims": [{"name": ENTRY, "request": "main"}],
    }
    assert found["side"] == {"limits": {}, "claims": [{"name": ENTRY, "request": "side"}]}
    assert found["idle"] == {"limits": {}}
    name = changed["metadata"]["labels"][GENERATED]
    assert changed["spec"]["resourceClaims"] == [{"name": ENTRY, "resourceClaimTemplateName": name}]
    claim = read_generated(changed["metadata"]["annotations"][GENERATED], name)
    names = [each["name"] for each in template_spec(claim)["spec"]["devices"]["requests"]]
    assert names == ["main", "side"]
    assert parse(changed, config()) is None, "the changed pod requests no shares"


def test_claims_that_the_pod_has_already_stay() -> None:
    main = container("main", gpu=1, gpumem=1000)
    main["resources"]["claims"] = [{"name": "nic"}]
    nic = {"name": "nic", "resourceClaimName": "nic"}
    manifest = pod(main, annotations=YES, resourceClaims=[nic])
    manifest["metadata"]["labels"] = {"app": "a"}
    changed, _ = admitted(manifest)
    assert [each["name"] for each in changed["spec"]["resourceClaims"]] == ["nic", ENTRY]
    assert [each["name"] for each in changed["spec"]["containers"][0]["resources"]["claims"]] == ["nic", ENTRY]
    assert changed["metadata"]["labels"]["app"] == "a"


def test_a_claim_of_the_same_name_is_in_the_way() -> None:
    manifest = pod(container(gpu=1), annotations=YES, resourceClaims=[{"name": ENTRY, "resourceClaimName": "x"}])
    assert "has a claim with the name lamina already; rename it" in refusal(manifest)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (asking(gpu=1, gpumem_percentage=30), 'container "main": a percentage of memory'),
        (pod(container(gpu=1, gpumem=1), init=(container("i", gpu=1, gpumem=1),)), "the share of an init container"),
    ],
)
def test_what_no_claim_can_express_is_refused_if_asked_and_otherwise_served_as_before(
    manifest: Pod, reason: str
) -> None:
    changed, warnings = admitted(manifest, "always")
    assert not has_claim(changed) and any(reason in each for each in warnings)
    manifest["metadata"]["annotations"] = YES
    assert reason in refusal(manifest, "always")


def test_members_of_groups_stay_with_laminas_scheduler() -> None:
    manifest = pod(container(gpu=1, gpumem=1000), annotations=YES)
    manifest["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    assert "cannot express the pod group g" in refusal(manifest)


@pytest.mark.parametrize(
    "asked",
    [
        {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4000},
        {"volcano.sh/gpu-mem.128Mi": 32},
        {"volcano.sh/gpu-mem.128Mi": 32, "volcano.sh/gpu-core.percentage": 20},
        {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "nvidia.com/gpucores": 10},
    ],
)
def test_every_dialect_is_converted(asked: dict[str, Any]) -> None:
    changed, _ = admitted(asking(**asked), "always")
    assert has_claim(changed) and changed["spec"]["containers"][0]["resources"]["limits"] == {}


def mapped(*resources: str) -> Pod:
    """The status of a pod for whose resources kube-scheduler has made a claim."""
    requests = [{"containerName": "main", "resourceName": name, "requestName": "r"} for name in resources]
    return {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": requests}}


@pytest.mark.parametrize(
    ("status", "served"),
    [
        ({}, False),
        ({"extendedResourceClaimStatus": None}, False),
        (mapped(), False),
        (mapped("example.com/device"), False),
        (mapped("nvidia.com/gpumem"), False),  # no ticket: kubelet does not allocate it
        (mapped("nvidia.com/gpu"), True),
        (mapped("example.com/device", "nvidia.com/gpu"), True),
        (mapped("volcano.sh/vgpu-number"), True),
    ],
)
def test_a_pod_for_whose_tickets_a_claim_was_made_requests_no_grant(status: Pod, served: bool) -> None:
    manifest = {**pod(container(gpu=1, gpumem=1000)), "status": status}
    assert served_by_claim(manifest, DEFAULT) is served
    assert (parse(manifest, DEFAULT) is None) is served
    assert bool(ticket_holders(manifest, DEFAULT)) is not served


def test_a_tenant_cannot_avoid_admission_by_the_status_of_a_new_pod() -> None:
    manifest = {**pod(container(gpu=1, gpumem_percentage=150)), "status": mapped("nvidia.com/gpu")}
    verdict, _ = review(new_pod(AdmissionRequest(uid="u", object=manifest, namespace="team")), DEFAULT)
    assert not verdict.allowed and "150" in verdict.message
