"""What Lamina counts on in kubelet, containerd and the scheduler."""

import json

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.node import RealNode
from tests.cluster.queries import SEEN, SHARE, apply, cdi_specs, container, grant, pod, running, sh
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("without_pods")


def test_each_container_has_a_spec_of_its_own_and_it_goes_with_the_pod(cluster: RealCluster, node: RealNode) -> None:
    before = cdi_specs(node)
    for name in ("first", "second"):
        apply(cluster, name, node.name)
    running(cluster, "first", "second")
    assert len(cdi_specs(node) - before) == 2
    cluster.kubectl("delete", "pod", "first", "second", "--grace-period=0", "--force")
    wait_until(lambda: cdi_specs(node) == before, lambda: f"specs stay: {cdi_specs(node) - before}")


def test_a_container_that_is_started_again_has_the_same_share(cluster: RealCluster, node: RealNode) -> None:
    command = ["sh", "-c", "nvidia-smi; sleep 3"]
    cluster.kubectl("apply", "-f", "-", stdin=pod("again", *command, limits=SHARE, node=node.name))
    wait_until(
        lambda: container(cluster, "again").get("restartCount", 0) >= 1,
        lambda: cluster.kubectl("describe", "pod", "again"),
    )
    wait_until(lambda: SEEN in cluster.kubectl("logs", "again"), lambda: cluster.kubectl("logs", "again"))


def test_init_and_several_gpu_containers_each_have_their_share(cluster: RealCluster, node: RealNode) -> None:
    """Kubelets before 1.31 fail pods whose init containers name a resource that is not on the node."""
    made = json.loads(pod("several", limits=SHARE, node=node.name))
    (first,) = made["spec"]["containers"]
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000, "nvidia.com/gpucores": 30, "nvidia.com/priority": 1}
    second = first | {"name": "second", "resources": {"limits": limits}}
    init = first | {"name": "init", "command": ["nvidia-smi"], "resources": {"limits": limits}}
    percent = {"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 70}
    third = first | {"name": "third", "command": ["nvidia-smi"], "resources": {"limits": percent}}
    made["spec"] |= {"containers": [first, second], "initContainers": [init, third]}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    running(cluster, "several")
    assert SEEN in cluster.kubectl("exec", "several", "-c", "main", "--", "nvidia-smi")
    assert "0MiB /   2000MiB" in cluster.kubectl("exec", "several", "-c", "second", "--", "nvidia-smi")
    assert "0MiB /   2000MiB" in cluster.kubectl("logs", "several", "-c", "init")
    assert "0MiB /  22937MiB" in cluster.kubectl("logs", "several", "-c", "third")


def test_a_container_without_a_grant_is_refused_with_the_reason_and_tried_again(
    cluster: RealCluster, node: RealNode
) -> None:
    """No one placed the pod; it starts with what is granted to it later."""
    made = json.loads(pod("bound", limits=SHARE))
    made["metadata"]["labels"] = {"lamina.dev/webhook": "ignore"}
    made["spec"]["nodeName"] = node.name
    del made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"]
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made))

    def why() -> str:
        return str(container(cluster, "bound").get("state", {}).get("waiting", {}).get("message", ""))

    wait_until(lambda: "default/bound has no grant" in why(), lambda: cluster.kubectl("describe", "pod", "bound"))
    gpu = json.loads(cluster.kubectl("get", "inventory", node.name, "-o", "json"))["spec"]["gpus"][0]["uuid"]
    grant(cluster, "bound", node.name, gpu, 3000)
    running(cluster, "bound")
    assert SEEN in sh(cluster, "bound", "nvidia-smi")


def test_a_sidecar_has_its_share_in_addition_to_the_others(cluster: RealCluster, node: RealNode) -> None:
    """It starts before them, and one that ends is started again while they run."""
    if cluster.binaries.version < (1, 29):
        pytest.skip("init containers that go on as sidecars came with Kubernetes 1.29")
    made = json.loads(pod("neighbors", limits=SHARE, node=node.name))
    (main,) = made["spec"]["containers"]
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}
    sidecar = main | {"name": "sidecar", "restartPolicy": "Always", "resources": {"limits": limits}}
    init = main | {"name": "init", "command": ["nvidia-smi"]}
    made["spec"] |= {"initContainers": [sidecar, init]}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    running(cluster, "neighbors")

    def observed(which: str) -> str:
        return cluster.kubectl("exec", "neighbors", "-c", which, "--", "nvidia-smi")

    assert SEEN in observed("main")
    assert SEEN in cluster.kubectl("logs", "neighbors", "-c", "init")
    assert "0MiB /   2000MiB" in observed("sidecar")
    id = container(cluster, "neighbors", "sidecar")["containerID"].partition("//")[2]
    node.ctr("tasks", "kill", "--signal", "SIGKILL", id)
    wait_until(
        lambda: (again := container(cluster, "neighbors", "sidecar"))["restartCount"] == 1 and again["ready"],
        lambda: cluster.kubectl("describe", "pod", "neighbors"),
    )
    assert "0MiB /   2000MiB" in observed("sidecar")
    assert container(cluster, "neighbors")["restartCount"] == 0


def test_jobs_that_finish_leave_their_gpus_to_others(cluster: RealCluster, node: RealNode) -> None:
    """Two pods fit at a time, so others wait for those that end; the ended ones stay, and hold nothing."""
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000}
    before = cdi_specs(node)
    command = ["gpu-load", "--seconds", "0.5", "--memory-mib", "15000"]
    spec = json.loads(pod("any", *command, limits=limits, node=node.name, restartPolicy="Never"))["spec"]
    whole = {"completions": 6, "parallelism": 6, "template": {"spec": spec}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": whole}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(job))

    def finished() -> bool:
        return cluster.kubectl("get", "job", "job", "-o", "jsonpath={.status.succeeded}") == "6"

    wait_until(finished, lambda: cluster.kubectl("describe", "pods", "-l", "job-name=job"))
    cluster.kubectl("apply", "-f", "-", stdin=pod("all", limits={"nvidia.com/gpu": 2}, node=node.name))
    running(cluster, "all")
    assert len(cluster.kubectl("get", "pods", "-l", "job-name=job", "-o", "name").split()) == 6
    wait_until(lambda: len(cdi_specs(node) - before) == 1, lambda: f"specs stay: {cdi_specs(node) - before}")
