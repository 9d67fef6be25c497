"""Whatever breaks while pods come and go: no GPU is given away twice, and in the end nothing is left over."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from lamina_lab import simgpu
from tests.cluster import injection, observation
from tests.cluster.claims import delete_claims, missing
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.invariants import disagreements, over_committed
from tests.cluster.queries import TWO_A100, apply, configured, grant, other_gpus, pod, running
from tests.cluster.soak import LABEL, Soak
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("without_pods")
PODS = int(os.environ.get("LAMINA_SOAK_PODS", "60"))
SEED = int(os.environ.get("LAMINA_SOAK_SEED") or random.SystemRandom().randrange(1 << 32))
CARD_MIB = 40960
REPLICAS = [{"name": "nvidia.com/gpu", "replicas": 4}]
FILES = {
    "whole": {"version": "v1"},
    "turns": {"version": "v1", "sharing": {"timeSlicing": {"resources": REPLICAS}}},
    "renamed": {"version": "v1", "sharing": {"timeSlicing": {"resources": REPLICAS, "renameByDefault": True}}},
    "mps": {"version": "v1", "sharing": {"mps": {"resources": REPLICAS}}},
}
"""NVIDIA's configurations, of which the last node has one or none at a time."""
CONFIG = {
    "nativeDevices": {"configs": FILES},
    "nodes": {"overrides": [{"name": "node1", "modes": ["quota", "mig"]}]},
}


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    """Two replicas of the controller, and nodes with A100, of which the first one's may be cut for pods.

    The agents serve claims where the server has what these need.
    """
    with configured(cluster, CONFIG), other_gpus(cluster, TWO_A100):
        processes = Processes(cluster, replicas=2, dra=not missing(cluster))
        with cluster.steps("Lamina with two replicas"):
            processes.start()
        yield processes
        processes.remove()


def test_pods_come_and_go_while_everything_breaks(cluster: RealCluster, lamina: Processes, figures: list[str]) -> None:
    """At the end each node gives all of its GPUs to one pod, so no one remembers anybody who is gone."""
    print(f"LAMINA_SOAK_SEED={SEED}")
    claims = not missing(cluster)
    soak = Soak(cluster, lamina, pods=PODS, seed=SEED, files=("", "", *FILES), claims=claims)
    start = time.monotonic()
    soak.run()
    figures.append(
        f"soak {SEED}: {len(soak.pods)} pods in {time.monotonic() - start:.0f} s, {len(soak.ran)} containers ran "
        f"({words(Counter(soak.ran.values()))}), {soak.looks} looks, broken: {words(soak.broken)}; "
        f"{len(soak.violations)} violations"
    )
    cluster.kubectl("label", "node", cluster.nodes[-1].name, f"{LABEL}-")
    assert soak.pods and soak.ran, "nothing was there to be looked at"
    assert soak.violations + observation.settled(cluster) == []
    if claims:
        delete_claims(cluster)
    for node in cluster.nodes:
        all_gpus = pod(f"all-{node.name}", limits={"nvidia.com/gpu": 2}, node=node.name)
        cluster.kubectl("apply", "-f", "-", stdin=all_gpus)
    running(cluster, *(f"all-{node.name}" for node in cluster.nodes))


def test_injected_objects_are_found(cluster: RealCluster, lamina: Processes, node: RealNode) -> None:
    """The comparison can find something: a GPU given away twice, and each kind of leak."""
    cluster.kubectl("apply", "-f", "-", stdin=pod("plain", node=node.name))
    apply(cluster, "there", node.name)
    running(cluster, "plain", "there")
    wait_until(lambda: observation.settled(cluster) == [], lambda: str(observation.settled(cluster)))
    lamina.agents[node.name].kill()
    try:
        (used,) = {
            share.gpu for each in observation.look(cluster).grants for main in each.containers for share in main.shares
        }
        (idle,) = {gpu.uuid for gpu in simgpu.read(node.gpus.machine).gpus} - {used}
        grant(cluster, "plain", node.name, used, CARD_MIB)
        injection.inject_spec(node, used)
        folder = injection.inject_folder(node)
        with injection.instance(node, idle), injection.daemon(node, idle):
            observed = observation.look(cluster)
    finally:
        cluster.kubectl("delete", "pod", "plain", "--grace-period=0", "--force")
        lamina.agents[node.name].start()
        lamina.wait()
    assert observed.ledger is not None and observed.nodes[node.name].holders and observed.nodes[node.name].containers
    assert f"{used} of {node.name}: {CARD_MIB + 3000} MiB are granted, {CARD_MIB} may be, to plain, there" in (
        over_committed(observed)
    )
    leaks = {
        f"no one owns the CDI spec {injection.NAME}",
        f"no one owns the container folder {folder}",
        f"no one made 1g.5gb at 0 of {idle}, which is there",
        f"no one owns the processes of MPS on {idle}",
    }
    assert {f"{node.name}: {leak}" for leak in leaks} <= {finding.says for finding in disagreements(observed)}


def words(counted: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counted.items())) or "nothing"
