"""Manifests in the formats of NVIDIA's and HAMi's drivers for ResourceClaims, on a real kubelet and kube-scheduler.

Those of NVIDIA's quickstart are in tests/scenarios/quickstart, which the lab runs too.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests
from tests.cluster.claims import (
    GIB,
    allocate,
    amounts,
    apply,
    claim,
    delete_claims,
    devices,
    exactly,
    seen,
    serving,
    user,
)
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.own_images import WORKLOAD
from tests.cluster.components.processes import Processes
from tests.cluster.queries import delete_pods, running
from tests.waiting import wait_until

QUICKSTART = Path(tests.__file__).parent / "scenarios/quickstart"
IMAGE = "docker.io/library/ubuntu:22.04"
HAMI = "hami-core-gpu.project-hami.io"
CONFIG = "nvidia.com/mig.config"


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    with serving(cluster) as processes:
        for node in cluster.nodes:
            node.ctr("images", "tag", "--force", WORKLOAD, IMAGE)
        yield processes


@pytest.fixture(autouse=True)
def _without_claims(cluster: RealCluster, lamina: Processes) -> Iterator[None]:
    yield
    delete_pods(cluster)
    delete_claims(cluster)


def started(cluster: RealCluster, number: int, *pods: str) -> None:
    cluster.kubectl("apply", "-f", str(QUICKSTART / f"gpu-test{number}.yaml"))
    running(cluster, *pods)


def test_1_two_pods_get_two_gpus(cluster: RealCluster) -> None:
    started(cluster, 1, "pod1", "pod2")
    assert len({*seen(cluster, "pod1", "ctr0"), *seen(cluster, "pod2", "ctr0")}) == 2


def test_2_two_containers_share_a_gpu(cluster: RealCluster) -> None:
    started(cluster, 2, "pod")
    assert seen(cluster, "pod", "ctr0") == seen(cluster, "pod", "ctr1")


def test_3_two_pods_share_a_gpu(cluster: RealCluster) -> None:
    started(cluster, 3, "pod1", "pod2")
    assert seen(cluster, "pod1", "ctr0") == seen(cluster, "pod2", "ctr0")


def test_6_a_gpu_is_selected_by_its_name_and_index(cluster: RealCluster) -> None:
    started(cluster, 6, "pod")
    assert "A100" in cluster.kubectl("exec", "pod", "-c", "ctr0", "--", "nvidia-smi", "-L")


def test_hamis_claims_have_shares(cluster: RealCluster) -> None:
    """A claim, and one that is made from a template."""
    single = claim("single-gpu-0", exactly(HAMI, **amounts(cores="30", memory="4Gi")))
    template = {**single, "kind": "ResourceClaimTemplate", "metadata": {"name": "single-gpu-tpl"}}
    template["spec"] = {"spec": single["spec"]}
    of_template = user("pod-tpl-0", "")
    of_template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu-tpl"}]
    apply(cluster, single, template, user("pod-0", "single-gpu-0"), of_template)
    running(cluster, "pod-0", "pod-tpl-0")
    for name in ("pod-0", "pod-tpl-0"):
        assert allocate(cluster, name, 3 * GIB, 2 * GIB) == ["0", "2"]


def test_4_four_containers_have_a_mig_device_each(cluster: RealCluster) -> None:
    node = cluster.nodes[1].name
    cluster.kubectl("label", "node", node, f"{CONFIG}=all-balanced")
    try:
        wait_until(lambda: len(devices(cluster, node)) == 8, lambda: str(devices(cluster, node)))
        started(cluster, 4, "pod")
        found = [seen(cluster, "pod", f"ctr{number}") for number in range(4)]
        assert all(len(each) == 1 and each[0].startswith("MIG-") for each in found)
        assert len({each[0] for each in found}) == 4
        delete_pods(cluster)
        delete_claims(cluster)
    finally:
        cluster.kubectl("label", "node", node, f"{CONFIG}=all-disabled", "--overwrite")
    wait_until(lambda: len(devices(cluster, node)) == 2, lambda: json.dumps(devices(cluster, node)), within_s=180)
    cluster.kubectl("label", "node", node, f"{CONFIG}-")
