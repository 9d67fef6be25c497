"""Pods in the dialects of others that are served by claims that Lamina generates, in the lab."""

from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, running
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import OUT_OF_MEMORY, allocate, claims, seen, without_claims
from tests.waiting import wait_until

CONFIG = EXAMPLES / "configuration" / "v1alpha1" / "by-claim.yaml"
ASKED = "lamina.dev/by-claim"
MIB = 1 << 20


@pytest.fixture(scope="module")
def claim_lab(start_lab: StartLab) -> Lab:
    return start_lab("byclaim", "--machines", str(EXAMPLES / "lab-dra.yaml"), "--config", str(CONFIG))


@pytest.fixture
def lab(claim_lab: Lab) -> Iterator[Lab]:
    yield claim_lab
    claim_lab.delete_workloads()
    without_claims(claim_lab)


def pod(name: str, resources: str, *annotations: str) -> str:
    written = "".join(f"    {each}\n" for each in (f'{ASKED}: "true"', *annotations))
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  annotations:\n{written}"
        f"spec:\n  containers:\n  - name: main\n    image: any\n    command: [sleep, infinity]\n"
        f"    resources:\n      limits: {resources}\n"
    )


@pytest.mark.parametrize(
    ("name", "resources"),
    [
        ("volcano", "{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 4000}"),
        ("cce", "{volcano.sh/gpu-mem.128Mi: 32}"),
    ],
)
def test_pods_of_volcano_and_cce_have_their_limits_by_claims(lab: Lab, name: str, resources: str) -> None:
    lab.apply(pod(name, resources))
    running(lab, name)
    assert len(claims(lab)) == 1 and lab.kubectl("get", "grants", "-o", "name") == ""
    assert allocate(lab, name, 3000 * MIB, 2000 * MIB) == ["0", OUT_OF_MEMORY]


def test_two_gpus_are_two_different_ones(lab: Lab) -> None:
    lab.apply(pod("two", "{nvidia.com/gpu: 2, nvidia.com/gpumem: 1000}"))
    running(lab, "two")
    assert len(seen(lab, "two")) == len({*seen(lab, "two")}) == 2


def test_a_pod_that_no_claim_can_express_is_refused_with_the_reason(lab: Lab) -> None:
    manifest = pod("percent", "{nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 30}")
    answer = lab.kubectl("apply", "-f", "-", stdin=manifest, check=False)
    assert 'lamina.dev/by-claim: a ResourceClaim cannot express container "main": a percentage of memory' in answer
    assert claims(lab) == []


def test_equal_pods_share_a_template_and_others_have_another(lab: Lab) -> None:
    for name, memory in (("one", 1000), ("same", 1000), ("more", 2000)):
        lab.apply(pod(name, f"{{nvidia.com/gpu: 1, nvidia.com/gpumem: {memory}}}"))
    running(lab, "one", "same", "more")
    specs = [lab.read(f"/api/v1/namespaces/default/pods/{name}")["spec"] for name in ("one", "same", "more")]
    names = [spec["resourceClaims"][0]["resourceClaimTemplateName"] for spec in specs]
    assert names[0] == names[1] != names[2]


def test_a_pod_that_does_not_ask_is_served_by_the_device_plugin(lab: Lab) -> None:
    apply(lab, "memory-limit")
    wait_until(lambda: lab.kubectl("get", "grants", "-o", "name") != "", lambda: lab.kubectl("get", "pods"))
    assert claims(lab) == []
