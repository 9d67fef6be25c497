"""MIG devices on demand, binding conditions and generated claims, with a real kube-scheduler and kube-apiserver."""

from collections.abc import Iterator

import pytest

from tests.cluster import observation
from tests.cluster.claims import delete_claims, serving
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.kubernetes import Kubernetes
from tests.cluster.queries import delete_pods, running
from tests.scenarios.resource_claims import MIG_CLASS, apply, claim, devices, exactly, seen, selecting, user
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["claims on demand"]


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    with serving(cluster, ROWS.config, binding=True) as processes:
        found = Kubernetes(cluster)
        wait_until(lambda: len(devices(found)) == 4 * 26, lambda: str(devices(found)))
        yield processes


@pytest.fixture
def lab(cluster: RealCluster, lamina: Processes) -> Iterator[Kubernetes]:
    yield Kubernetes(cluster)
    delete_pods(cluster)
    delete_claims(cluster)
    wait_until(lambda: not any(instances(cluster, each) for each in cluster.nodes), lambda: "MIG devices stay")


def instances(cluster: RealCluster, node: RealNode) -> list[str]:
    """The UUIDs of the MIG devices on the node."""
    return [*observation.look(cluster).nodes[node.name].instances]


globals().update(ROWS.tests)


def test_seven_small_devices_fit_one_gpu(cluster: RealCluster, lab: Kubernetes, node: RealNode) -> None:
    small = exactly(MIG_CLASS, **selecting("gpu.profile == '1g.5gb'"))
    same = {"matchAttribute": "gpu.nvidia.com/parentUUID"}
    apply(lab, claim("seven", *[small] * 7, constraints=[same]), user("seven", "seven", node=node.name))
    running(cluster, "seven")
    assert len({*seen(lab, "seven")}) == len(instances(cluster, node)) == 7
