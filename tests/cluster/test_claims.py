"""ResourceClaims on a real kubelet and a real kube-scheduler: shares are enforced, and each GPU has one door."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.cluster import observation
from tests.cluster.claims import (
    CLASS,
    GIB,
    allocate,
    amounts,
    apply,
    claim,
    delete_claims,
    devices,
    exactly,
    names,
    offered,
    seen,
    serving,
    share,
    user,
)
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.queries import delete_pods, phase, pod, running, sh, why_pending
from tests.waiting import wait_until

OUT_OF_MEMORY = "2"
CARD_GIB = 40
ADMIN = "resource.kubernetes.io/admin-access"


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    with serving(cluster) as processes:
        yield processes


@pytest.fixture(autouse=True)
def _without_claims(cluster: RealCluster, lamina: Processes) -> Iterator[None]:
    yield
    delete_pods(cluster)
    delete_claims(cluster)
    offered(cluster)


def events(cluster: RealCluster, name: str) -> str:
    return cluster.kubectl("describe", "pod", name)


def test_a_claim_of_4_gib_gets_out_of_memory_at_4_gib(cluster: RealCluster, figures: list[str]) -> None:
    start = time.monotonic()
    share(cluster, "four", memory="4Gi", cores="30")
    running(cluster, "four")
    figures.append(f"apply to Running, one pod with a claim: {time.monotonic() - start:.1f} s")
    assert allocate(cluster, "four", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    assert "0MiB /   4096MiB" in sh(cluster, "four", "nvidia-smi")


def test_containers_and_pods_of_one_claim_share_one_limit(cluster: RealCluster) -> None:
    share(cluster, "first", memory="4Gi", containers=2)
    apply(cluster, user("second", "first"))
    running(cluster, "first", "second")
    assert seen(cluster, "first") == seen(cluster, "first", "c1") == seen(cluster, "second")
    hold = ["gpu-load", "--memory-mib", "2000", "--seconds", "3600"]
    apply(cluster, user("holder", "first", *hold))
    running(cluster, "holder")
    wait_until(lambda: allocate(cluster, "first", 3 * GIB) == [OUT_OF_MEMORY])
    for name, container in (("first", "c1"), ("second", "main")):
        assert allocate(cluster, name, 3 * GIB, container=container) == [OUT_OF_MEMORY]
        assert allocate(cluster, name, GIB, container=container) == ["0"]


def test_a_whole_gpu_has_no_facade_and_no_other_user(cluster: RealCluster, node: RealNode) -> None:
    for name in ("one", "two"):
        share(cluster, name, node=node.name)
    running(cluster, "one", "two")
    assert allocate(cluster, "one", (CARD_GIB - 1) * GIB) == ["0"]
    assert sh(cluster, "one", "ls -d /run/lamina || echo none") == "none\n"
    assert len({*seen(cluster, "one"), *seen(cluster, "two")}) == 2
    share(cluster, "three", node=node.name, memory="1Gi")
    wait_until(lambda: "cannot allocate all claims" in why_pending(cluster, "three"))


def test_a_gpu_of_a_claim_takes_no_grant_and_the_reverse(cluster: RealCluster, node: RealNode) -> None:
    share(cluster, "claimed", node=node.name, memory="1Gi")
    running(cluster, "claimed")
    limits = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 1000}
    cluster.kubectl("apply", "-f", "-", stdin=pod("both", limits=limits, node=node.name))
    wait_until(lambda: why_pending(cluster, "both"), lambda: events(cluster, "both"))
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}
    cluster.kubectl("apply", "-f", "-", stdin=pod("granted", limits=limits, node=node.name))
    running(cluster, "granted")
    assert not {*seen(cluster, "claimed")} & {*seen(cluster, "granted")}
    wait_until(lambda: len(devices(cluster, node.name)) == 1, lambda: str(devices(cluster, node.name)))
    share(cluster, "whole", node=node.name)
    wait_until(lambda: "cannot allocate all claims" in why_pending(cluster, "whole"))
    assert phase(cluster, "both") == "Pending"


def test_an_agent_that_was_away_prepares_and_unprepares(
    cluster: RealCluster, lamina: Processes, node: RealNode
) -> None:
    share(cluster, "stays", node=node.name, memory="4Gi")
    share(cluster, "goes", node=node.name, memory="4Gi")
    running(cluster, "stays", "goes")
    lamina.agents[node.name].kill()
    share(cluster, "comes", node=node.name, memory="30Gi")
    cluster.kubectl("delete", "pod", "goes", "--wait=false")
    wait_until(lambda: "FailedPrepareDynamicResources" in events(cluster, "comes"), lambda: events(cluster, "comes"))
    assert allocate(cluster, "stays", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY], "a limit holds without the agent"
    lamina.agents[node.name].start()
    running(cluster, "comes")
    assert allocate(cluster, "stays", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    wait_until(lambda: "goes" not in cluster.kubectl("get", "pods", "-o", "name"))


def test_a_kubelet_that_starts_again_finds_the_driver(cluster: RealCluster, node: RealNode) -> None:
    share(cluster, "before", node=node.name, memory="4Gi")
    running(cluster, "before")
    node.kubelet.restart()
    node.wait()
    share(cluster, "after", node=node.name, memory="4Gi")
    running(cluster, "after")
    assert phase(cluster, "before") == "Running"
    assert allocate(cluster, "before", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_claims_run_again_after_a_reboot(cluster: RealCluster, lamina: Processes, node: RealNode) -> None:
    share(cluster, "stays", node=node.name, memory="4Gi")
    running(cluster, "stays")
    node.reboot()
    lamina.reboot(node)

    def restarted() -> bool:
        (status,) = json.loads(cluster.kubectl("get", "pod", "stays", "-o", "json"))["status"]["containerStatuses"]
        return bool(status["restartCount"] and status["ready"])

    wait_until(restarted, lambda: events(cluster, "stays"))
    assert allocate(cluster, "stays", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_claims_that_were_deleted_by_force_leave_nothing(
    cluster: RealCluster, lamina: Processes, node: RealNode
) -> None:
    for name in ("one", "two"):
        share(cluster, name, node=node.name, memory="30Gi")
    running(cluster, "one", "two")
    lamina.agents[node.name].kill()
    cluster.kubectl("delete", "pods", "one", "two", "--grace-period=0", "--force")
    for name in ("one", "two"):
        cluster.kubectl("patch", "resourceclaim", name, "-p", '{"metadata": {"finalizers": null}}', "--type=merge")
    cluster.kubectl("delete", "resourceclaims", "--all")
    lamina.agents[node.name].start()
    for name in ("three", "four"):
        share(cluster, name, node=node.name, memory="30Gi")
    running(cluster, "three", "four")
    assert allocate(cluster, "four", 29 * GIB) == ["0"]
    assert observation.settled(cluster) == []


def test_admin_access_sees_all_devices_and_takes_nothing(cluster: RealCluster, node: RealNode) -> None:
    """kube-scheduler looks for capacity even for them, so the claim asks for as little as there can be."""
    share(cluster, "tenant", node=node.name, memory="4Gi")
    running(cluster, "tenant")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "watchers", "labels": {ADMIN: "true"}}}
    every = claim("every", exactly(allocationMode="All", adminAccess=True, **amounts(memory="1Mi")))
    watcher = user("watcher", "every", node=node.name)
    try:
        apply(cluster, namespace)
        apply(
            cluster, *({**each, "metadata": each["metadata"] | {"namespace": "watchers"}} for each in (every, watcher))
        )
        status = ("get", "pod", "watcher", "-n", "watchers", "-o", "jsonpath={.status.phase}")
        wait_until(
            lambda: cluster.kubectl(*status) == "Running",
            lambda: cluster.kubectl("describe", "pod", "watcher", "-n", "watchers"),
        )
        assert {*seen(cluster, "watcher", namespace="watchers")} > {*seen(cluster, "tenant")}
        assert allocate(cluster, "tenant", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
        share(cluster, "next", node=node.name, memory="36Gi")
        share(cluster, "other", node=node.name)
        running(cluster, "next", "other")
    finally:
        cluster.kubectl("delete", "namespace", "watchers", timeout=120)


def test_the_first_available_alternative_is_served(cluster: RealCluster) -> None:
    alternatives = [
        {"name": "mig", "deviceClassName": "mig.nvidia.com"},
        {"name": "part", "deviceClassName": CLASS, **amounts(memory="10Gi")},
    ]
    apply(cluster, claim("either", {"firstAvailable": alternatives}), user("either", "either"))
    running(cluster, "either")
    assert allocate(cluster, "either", 9 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_a_class_serves_a_pod_with_plain_limits(cluster: RealCluster) -> None:
    """By the name of a resource that every class has; the device plugin serves nvidia.com/gpu on these nodes."""
    limits = {f"deviceclass.resource.kubernetes.io/{CLASS}": 1}
    cluster.kubectl("apply", "-f", "-", stdin=pod("plain", limits=limits))
    running(cluster, "plain")
    assert len(seen(cluster, "plain")) == 1
    assert any(name.startswith("plain-extended-resources-") for name in names(cluster))


def test_the_agent_is_registered_with_kubelet(cluster: RealCluster, node: RealNode) -> None:
    sockets = node.sandbox.run("sh", "-c", "ls /var/lib/kubelet/plugins_registry")
    assert CLASS in sockets
    share(cluster, "listed", node=node.name, memory="4Gi")
    running(cluster, "listed")
    state = json.loads(node.sandbox.run("cat", "/var/lib/kubelet/dra_manager_state"))
    assert CLASS in json.dumps(state), "kubelet's own record of prepared claims names the driver"
