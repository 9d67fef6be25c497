"""Tests of manifests in the formats of other drivers and of HAMi, which run on a lab and on the test cluster.

quickstart/ has one for each of the files gpu-test1 to gpu-test6 of NVIDIA's driver.
"""

from pathlib import Path

from tests.scenarios.examples import apply as apply_example
from tests.scenarios.examples import running, smi
from tests.scenarios.labs import Cluster
from tests.scenarios.resource_claims import (
    API,
    GIB,
    OUT_OF_MEMORY,
    allocate,
    amounts,
    apply,
    claim,
    claims,
    exactly,
    listed,
    seen,
    user,
)

QUICKSTART = Path(__file__).parent / "quickstart"
HAMI = "hami-core-gpu.project-hami.io"
MIB = 1 << 20


def started(lab: Cluster, number: int, *pods: str) -> None:
    lab.apply((QUICKSTART / f"gpu-test{number}.yaml").read_text())
    running(lab, *pods)


def test_1_two_pods_get_two_gpus(lab: Cluster) -> None:
    started(lab, 1, "pod1", "pod2")
    first, second = (seen(lab, pod, "ctr0") for pod in ("pod1", "pod2"))
    assert len(first) == len(second) == 1 and first != second


def test_2_two_containers_share_a_gpu(lab: Cluster) -> None:
    started(lab, 2, "pod")
    assert seen(lab, "pod", "ctr0") == seen(lab, "pod", "ctr1")
    assert len(claims(lab)) == 1


def test_3_two_pods_share_a_gpu(lab: Cluster) -> None:
    started(lab, 3, "pod1", "pod2")
    assert seen(lab, "pod1", "ctr0") == seen(lab, "pod2", "ctr0")


def four_containers_have_a_mig_device_each(lab: Cluster) -> None:
    """With gpu-test4, where the node offers such devices."""
    started(lab, 4, "pod")
    found = [listed(lab, "pod", f"ctr{number}") for number in range(4)]
    for each, profile in zip(found, ("1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"), strict=True):
        assert each.count("MIG-") == 1 and f"MIG {profile}" in each
    assert len({*found}) == 4


def test_6_a_gpu_is_selected_by_its_name_and_index(lab: Cluster) -> None:
    started(lab, 6, "pod")
    assert "A100" in listed(lab, "pod", "ctr0")


def test_hamis_claims_have_shares(lab: Cluster) -> None:
    """A claim, and one that is made from a template."""
    single = claim("single-gpu-0", exactly(HAMI, **amounts(cores="30", memory="4Gi")))
    template = {**single, "kind": "ResourceClaimTemplate", "metadata": {"name": "single-gpu-tpl"}}
    template["spec"] = {"spec": single["spec"]}
    of_template = user("pod-tpl-0", "")
    of_template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu-tpl"}]
    apply(lab, single, template, user("pod-0", "single-gpu-0"), of_template)
    running(lab, "pod-0", "pod-tpl-0")
    for name in ("pod-0", "pod-tpl-0"):
        assert allocate(lab, name, 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_a_pod_of_hami_has_its_limits_by_a_generated_claim(lab: Cluster) -> None:
    apply_example(lab, "dra/by-claim")
    running(lab, "by-claim")
    assert "/ 4000MiB" in " ".join(smi(lab, "by-claim").split())
    assert allocate(lab, "by-claim", 3000 * MIB, 2000 * MIB) == ["0", OUT_OF_MEMORY]
    (claim,) = claims(lab)
    (template,) = lab.read(f"/apis/{API}/namespaces/default/resourceclaimtemplates")["items"]
    assert claim["status"]["allocation"]["devices"]["results"][0]["consumedCapacity"]["cores"] == "30"
    spec = lab.read("/api/v1/namespaces/default/pods/by-claim")["spec"]
    assert spec["resourceClaims"] == [{"name": "lamina", "resourceClaimTemplateName": template["metadata"]["name"]}]
    assert "nvidia.com/gpumem" not in spec["containers"][0]["resources"].get("limits", {})
    assert lab.grants() == []
    row = lab.lamina("pods").stdout.splitlines()[1]
    assert "by-claim" in row and "4000 MiB" in row
