"""ResourceClaims on a real kubelet and a real kube-scheduler: shares are enforced, and each GPU has one door."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster import observation
from tests.cluster.claims import delete_claims, offered, serving
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.kubernetes import Kubernetes
from tests.cluster.queries import delete_pods, got, phase, pod, running
from tests.scenarios.claims_on_demand import ADMIN
from tests.scenarios.resource_claims import (
    CLASS,
    GIB,
    OUT_OF_MEMORY,
    allocate,
    amounts,
    apply,
    claim,
    exactly,
    names,
    seen,
    share,
    user,
)
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["claims"]


@pytest.fixture(scope="module")
def lamina(cluster: RealCluster) -> Iterator[Processes]:
    with serving(cluster, ROWS.config) as processes:
        yield processes


@pytest.fixture
def lab(cluster: RealCluster, lamina: Processes) -> Iterator[Kubernetes]:
    yield Kubernetes(cluster)
    delete_pods(cluster)
    delete_claims(cluster)
    offered(cluster)


def events(cluster: RealCluster, name: str) -> str:
    return cluster.kubectl("describe", "pod", name)


globals().update(ROWS.tests)


def test_an_agent_that_was_away_prepares_and_unprepares(
    cluster: RealCluster, lamina: Processes, lab: Kubernetes, node: RealNode
) -> None:
    share(lab, "stays", node=node.name, memory="4Gi")
    share(lab, "goes", node=node.name, memory="4Gi")
    running(cluster, "stays", "goes")
    lamina.agents[node.name].kill()
    share(lab, "comes", node=node.name, memory="30Gi")
    cluster.kubectl("delete", "pod", "goes", "--wait=false")
    wait_until(lambda: "FailedPrepareDynamicResources" in events(cluster, "comes"), lambda: events(cluster, "comes"))
    assert allocate(lab, "stays", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY], "a limit holds without the agent"
    lamina.agents[node.name].start()
    running(cluster, "comes")
    assert allocate(lab, "stays", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    wait_until(lambda: "goes" not in cluster.kubectl("get", "pods", "-o", "name"))


def test_a_kubelet_that_starts_again_finds_the_driver(cluster: RealCluster, lab: Kubernetes, node: RealNode) -> None:
    share(lab, "before", node=node.name, memory="4Gi")
    running(cluster, "before")
    node.kubelet.restart()
    node.wait()
    share(lab, "after", node=node.name, memory="4Gi")
    running(cluster, "after")
    assert phase(cluster, "before") == "Running"
    assert allocate(lab, "before", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_claims_run_again_after_a_reboot(
    cluster: RealCluster, lamina: Processes, lab: Kubernetes, node: RealNode
) -> None:
    share(lab, "stays", node=node.name, memory="4Gi")
    running(cluster, "stays")
    node.reboot()
    lamina.reboot(node)

    def restarted() -> bool:
        (status,) = got(cluster, "stays")["status"]["containerStatuses"]
        return bool(status["restartCount"] and status["ready"])

    wait_until(restarted, lambda: events(cluster, "stays"))
    assert allocate(lab, "stays", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_claims_that_were_deleted_by_force_leave_nothing(
    cluster: RealCluster, lamina: Processes, lab: Kubernetes, node: RealNode
) -> None:
    for name in ("one", "two"):
        share(lab, name, node=node.name, memory="30Gi")
    running(cluster, "one", "two")
    lamina.agents[node.name].kill()
    cluster.kubectl("delete", "pods", "one", "two", "--grace-period=0", "--force")
    for name in ("one", "two"):
        cluster.kubectl("patch", "resourceclaim", name, "-p", '{"metadata": {"finalizers": null}}', "--type=merge")
    cluster.kubectl("delete", "resourceclaims", "--all")
    lamina.agents[node.name].start()
    for name in ("three", "four"):
        share(lab, name, node=node.name, memory="30Gi")
    running(cluster, "three", "four")
    assert allocate(lab, "four", 29 * GIB) == ["0"]
    assert observation.settled(cluster) == []


def test_admin_access_sees_all_devices_and_takes_nothing(cluster: RealCluster, lab: Kubernetes, node: RealNode) -> None:
    """kube-scheduler looks for capacity even for them, so the claim asks for as little as there can be."""
    share(lab, "tenant", node=node.name, memory="4Gi")
    running(cluster, "tenant")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "watchers", "labels": {ADMIN: "true"}}}
    every = claim("every", exactly(allocationMode="All", adminAccess=True, **amounts(memory="1Mi")))
    watcher = user("watcher", "every", node=node.name)
    try:
        apply(lab, namespace)
        apply(lab, *(each | {"metadata": each["metadata"] | {"namespace": "watchers"}} for each in (every, watcher)))
        status = ("get", "pod", "watcher", "-n", "watchers", "-o", "jsonpath={.status.phase}")
        wait_until(
            lambda: cluster.kubectl(*status) == "Running",
            lambda: cluster.kubectl("describe", "pod", "watcher", "-n", "watchers"),
        )
        assert {*seen(lab, "watcher", namespace="watchers")} > {*seen(lab, "tenant")}
        assert allocate(lab, "tenant", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
        share(lab, "next", node=node.name, memory="36Gi")
        share(lab, "other", node=node.name)
        running(cluster, "next", "other")
    finally:
        cluster.kubectl("delete", "namespace", "watchers", timeout=120)


def test_a_class_serves_a_pod_with_plain_limits(cluster: RealCluster, lab: Kubernetes) -> None:
    """By the name of a resource that every class has; the device plugin serves nvidia.com/gpu on these nodes."""
    limits = {f"deviceclass.resource.kubernetes.io/{CLASS}": 1}
    cluster.kubectl("apply", "-f", "-", stdin=pod("plain", limits=limits))
    running(cluster, "plain")
    assert len(seen(lab, "plain")) == 1
    assert any(name.startswith("plain-extended-resources-") for name in names(lab))


def test_the_agent_is_registered_with_kubelet(cluster: RealCluster, lab: Kubernetes, node: RealNode) -> None:
    sockets = node.sandbox.run("sh", "-c", "ls /var/lib/kubelet/plugins_registry")
    assert CLASS in sockets
    share(lab, "listed", node=node.name, memory="4Gi")
    running(cluster, "listed")
    state = json.loads(node.sandbox.run("cat", "/var/lib/kubelet/dra_manager_state"))
    assert CLASS in json.dumps(state), "kubelet's own record of prepared claims names the driver"
