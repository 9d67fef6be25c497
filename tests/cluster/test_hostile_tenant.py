"""A hostile tenant in a namespace of its own, next to honest pods: nothing of it reaches these or a component."""

import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from lamina.core.component_names import ADMISSION_SECRET, API_VERSION, DEFAULT_NAMESPACE
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.hostile.components import changes, programs
from tests.cluster.hostile.soak import HostileSoak
from tests.cluster.hostile.tenant import Tenant
from tests.cluster.queries import TWO_A100, configured, other_gpus, pod, running
from tests.hostile_objects.pods import NAMESPACE as ODD_NAMESPACE
from tests.waiting import wait_until

PODS = int(os.environ.get("LAMINA_HOSTILE_PODS", "8"))
pytestmark = pytest.mark.usefixtures("without_pods")
SEED = int(os.environ.get("LAMINA_SOAK_SEED", "1"))
"""The same attacks and odd objects in each run, unless another seed is given."""
LATE_S = 200.0
TOO_BUSY = "this machine is too busy to keep even a simulated GPU busy"
CONFIG = {
    "apiVersion": API_VERSION,
    "kind": "Configuration",
    "sharing": {"computePolicy": "cap"},
    "admission": {"hideGpus": True},
}
"""With caps, too much is as wrong as too little."""


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    """Lamina with caps and hidden GPUs."""
    with configured(cluster, CONFIG), other_gpus(cluster, TWO_A100):
        processes = Processes(cluster)
        with cluster.steps("Lamina with caps"):
            processes.start()
        yield processes
        processes.remove()


@pytest.fixture
def tenant(cluster: RealCluster) -> Iterator[Tenant]:
    """The hostile tenant, and a namespace for odd objects; both leave nothing behind.

    Admission does not see the odd pods, of which it would refuse most: they are for the controller.
    """
    cluster.kubectl("create", "namespace", ODD_NAMESPACE)
    cluster.kubectl("label", "namespace", ODD_NAMESPACE, "lamina.dev/webhook=ignore")
    made = Tenant(cluster)
    yield made
    made.leave()
    cluster.kubectl("delete", "pods", "--all", "-n", ODD_NAMESPACE, "--force", "--grace-period=0")
    cluster.kubectl("delete", "namespace", ODD_NAMESPACE, timeout=120)
    for kind in ("nodes", "inventories"):
        cluster.kubectl("delete", kind, "odd-0", "odd-1", "--ignore-not-found")
    cluster.kubectl("delete", "secret", ADMISSION_SECRET, "-n", DEFAULT_NAMESPACE, "--ignore-not-found")


def test_honest_pods_next_to_a_hostile_tenant(
    cluster: RealCluster, lamina: Processes, tenant: Tenant, figures: list[str]
) -> None:
    print(f"LAMINA_SOAK_SEED={SEED}")
    soak = HostileSoak(cluster, lamina, tenant, pods=PODS, seed=SEED)
    accepted = tenant.accepted()
    start = time.monotonic()
    soak.run()
    figures.append(
        f"hostile tenant, seed {SEED}: {soak.ended} honest pods in {time.monotonic() - start:.0f} s; attacks: "
        f"{_words(soak.tried)}; odd objects: {_words(soak.taken)}; {soak.fairness.windows} windows of compute, "
        f"{soak.fairness.worst:.1f} points off at most; MiB at most: {_words(soak.most_mib)}; "
        f"{len(soak.violations)} violations"
    )
    assert soak.tried and soak.taken["pods"], "nothing happened"
    assert accepted + soak.violations == []
    if not soak.fairness.windows:
        pytest.skip(f"{TOO_BUSY}; everything else was compared")


def test_planted_violations_are_found(cluster: RealCluster, lamina: Processes, tenant: Tenant, node: RealNode) -> None:
    """A container that gets more than the cap that it is compared with, and an agent that was started again."""
    soak = HostileSoak(cluster, lamina, tenant, pods=1, seed=SEED)
    made = pod(
        "lifted", "gpu-load", "--kernel-ms", "10", "--seconds", "3600",
        limits={"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000, "nvidia.com/gpucores": 50}, node=node.name,
    )  # fmt: skip
    cluster.kubectl("apply", "-f", "-", stdin=made)
    # An odd Lease of the test before may just have cost the controller its lead, and a refused pod is tried again late.
    running(cluster, "lifted", patience_s=LATE_S)
    soak.expect("lifted", 20)
    end = time.monotonic() + 120
    wait_until(lambda: _looked(soak, "% of its GPU's time") or time.monotonic() > end, within_s=180)
    if not soak.fairness.windows:
        pytest.skip(TOO_BUSY)
    assert any("% of its GPU's time" in sentence for sentence in soak.violations), soak.violations
    before = programs(lamina)
    lamina.agents[node.name].restart()
    lamina.wait()
    assert changes(before, programs(lamina)) == [f"agent of {node.name} has started again"]


def _looked(soak: HostileSoak, part: str) -> bool:
    soak.look()
    return any(part in sentence for sentence in soak.violations)


def _words(counted: "Counter[str] | dict[str, int]") -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counted.items())) or "none"
