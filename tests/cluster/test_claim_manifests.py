"""Manifests in the formats of NVIDIA's and HAMi's drivers for ResourceClaims, on a real kubelet and kube-scheduler."""

from collections.abc import Iterator

import pytest

from tests.cluster.claims import delete_claims, serving
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.processes import Processes
from tests.cluster.kubernetes import Kubernetes
from tests.cluster.queries import delete_pods
from tests.scenarios.claim_manifests import four_containers_have_a_mig_device_each
from tests.scenarios.resource_claims import devices
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["claims of others"]
CONFIG = "nvidia.com/mig.config"


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    with serving(cluster, ROWS.config) as processes:
        yield processes


@pytest.fixture
def lab(cluster: RealCluster, lamina: Processes) -> Iterator[Kubernetes]:
    yield Kubernetes(cluster)
    delete_pods(cluster)
    delete_claims(cluster)


globals().update(ROWS.tests)


def test_4_four_containers_have_a_mig_device_each(cluster: RealCluster, lab: Kubernetes) -> None:
    node = cluster.nodes[1].name
    cluster.kubectl("label", "node", node, f"{CONFIG}=all-balanced")
    try:
        wait_until(lambda: len(devices(lab, node)) == 8, lambda: str(devices(lab, node)))
        four_containers_have_a_mig_device_each(lab)
        delete_pods(cluster)
        delete_claims(cluster)
    finally:
        cluster.kubectl("label", "node", node, f"{CONFIG}=all-disabled", "--overwrite")
    wait_until(lambda: len(devices(lab, node)) == 2, lambda: str(devices(lab, node)), within_s=180)
    cluster.kubectl("label", "node", node, f"{CONFIG}-")
