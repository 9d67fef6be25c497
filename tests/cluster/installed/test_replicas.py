"""Two replicas of the controller: one follows the other, and what happens while there is none."""

import json

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed.queries import (
    NAMESPACE,
    SHARE,
    TELLS,
    admits,
    granted,
    held,
    leader,
    listed,
    parts,
    totals,
    waiting,
    whole,
)
from tests.cluster.queries import Object, phase, pod, running
from tests.waiting import wait_until

MANY = 40
CARD_MIB = 32768


def kill(cluster: RealCluster, replica: Object) -> None:
    """SIGKILL to the process of the container."""
    spec, status = replica["spec"], replica["status"]
    (node,) = (each for each in cluster.nodes if each.name == spec["nodeName"])
    container = status["containerStatuses"][0]["containerID"].partition("//")[2]
    node.ctr("tasks", "kill", "--signal", "SIGKILL", container)


def test_leaders_die_while_pods_start(cluster: RealCluster, both: Installation) -> None:
    """All four GPUs are full to the last pod in the end, and each container has what its grant says."""
    pods = [json.loads(pod(f"many-{number}", "sh", "-c", TELLS, limits=SHARE)) for number in range(MANY)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "many"}

    def run() -> int:
        return sum(each["status"].get("phase") == "Running" for each in listed(cluster, "pods"))

    with cluster.steps(f"{MANY} pods with shares on two nodes, while two leaders die"):
        whole_list = {"apiVersion": "v1", "kind": "List", "items": pods}
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(whole_list), timeout=120)
        made = {each["metadata"]["uid"] for each in listed(cluster, "pods")}
        first = leader(cluster)
        kill(cluster, first)
        wait_until(lambda: not replica_is(cluster, first), lambda: "the replica is not killed")
        second = leader(cluster)["metadata"]["name"]
        cluster.kubectl("delete", "pod", second, "-n", NAMESPACE, "--grace-period=0", "--force")
        wait_until(lambda: run() == MANY, lambda: cluster.kubectl("get", "pods", "-o", "wide"), 180)
    assert {each["metadata"]["uid"] for each in listed(cluster, "pods")} == made
    wait_until(lambda: len(held(cluster, "many")) == MANY, lambda: f"these reported: {sorted(held(cluster, 'many'))}")
    assert held(cluster, "many") == granted(cluster)
    given = totals(granted(cluster))
    assert len(given) == 4
    assert max(given.values()) <= CARD_MIB
    whole(cluster)


def replica_is(cluster: RealCluster, replica: Object) -> bool:
    """Whether the replica still is what it was, the same container."""
    (now,) = (each for each in parts(cluster, "controller") if each["metadata"]["uid"] == replica["metadata"]["uid"])
    status = now["status"]["containerStatuses"][0]
    return "running" in status["state"] and bool(
        status["containerID"] == replica["status"]["containerStatuses"][0]["containerID"]
    )


def evict(cluster: RealCluster, pod: Object) -> str:
    """Ask for it as a drain does; why it is refused, or nothing."""
    name, version = pod["metadata"]["name"], "v1" if cluster.binaries.version >= (1, 22) else "v1beta1"
    body = {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    try:
        cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
    except Unavailable as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("part", ["controller", "scheduler"])
def test_one_replica_at_a_time_may_be_evicted(cluster: RealCluster, both: Installation, part: str) -> None:
    whole(cluster)
    first, second = parts(cluster, part)
    wait_until(lambda: evict(cluster, first) == "", lambda: evict(cluster, first))
    assert "disruption budget" in evict(cluster, second)


@pytest.fixture
def without_control(cluster: RealCluster, both: Installation) -> Installation:
    """Replicas are away; the test, or what follows it, brings them back."""
    cluster.kubectl("scale", "deployment/lamina-controller", "-n", NAMESPACE, "--replicas=0")
    wait_until(lambda: not parts(cluster, "controller"), lambda: cluster.kubectl("get", "pods", "-n", NAMESPACE))
    return both


def test_while_admission_is_down_other_pods_run_and_no_pod_gets_a_gpu(
    cluster: RealCluster, without_control: Installation
) -> None:
    """Servers from 1.28 on refuse pods with GPUs. Older ones let them pass to their own scheduler, but no agent starts
    them."""
    whole_gpu = {"nvidia.com/gpu": 1}
    try:
        cluster.kubectl("apply", "-f", "-", stdin=pod("plain"))
        running(cluster, "plain")
        if cluster.binaries.version >= (1, 28):
            for limits in (SHARE, whole_gpu):
                with pytest.raises(Unavailable, match=r"lamina\.dev"):
                    cluster.kubectl("apply", "-f", "-", stdin=pod("nothing", limits=limits))
        else:
            for name, limits in (("share", SHARE), ("nothing", whole_gpu)):
                cluster.kubectl("apply", "-f", "-", stdin=pod(name, limits=limits))
            names = ("share", "nothing")
            wait_until(
                lambda: all("no grant" in waiting(cluster, name) for name in names),
                lambda: " ".join(waiting(cluster, name) for name in names),
            )
            assert [phase(cluster, name) for name in names] == ["Pending", "Pending"]
    finally:
        cluster.kubectl("scale", "deployment/lamina-controller", "-n", NAMESPACE, "--replicas=2")
        wait_until(lambda: admits(cluster), lambda: "admission does not come back")
    whole(cluster)
    cluster.kubectl("delete", "pod", "share", "nothing", "--ignore-not-found", "--grace-period=0", "--force")
    cluster.kubectl("apply", "-f", "-", stdin=pod("nothing", limits=whole_gpu))
    running(cluster, "nothing")
