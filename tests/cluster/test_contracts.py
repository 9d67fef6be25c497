"""What Lamina counts on in kubelet, containerd and the scheduler."""

import json

import pytest

from tests.cluster.asking import SEEN, SHARE, apply, cdi_specs, container, grant, pod, running, sh, until
from tests.cluster.stage.node import Node
from tests.cluster.stage.stage import Stage

pytestmark = pytest.mark.usefixtures("without_pods")


def test_each_container_has_a_spec_of_its_own_and_it_goes_with_the_pod(stage: Stage, node: Node) -> None:
    before = cdi_specs(node)
    for name in ("first", "second"):
        apply(stage, name, node.name)
    running(stage, "first", "second")
    assert len(cdi_specs(node) - before) == 2
    stage.kubectl("delete", "pod", "first", "second", "--grace-period=0", "--force")
    until(lambda: cdi_specs(node) == before, lambda: f"specs stay: {cdi_specs(node) - before}")


def test_a_container_that_is_started_again_has_the_same_share(stage: Stage, node: Node) -> None:
    command = ["sh", "-c", "nvidia-smi; sleep 3"]
    stage.kubectl("apply", "-f", "-", stdin=pod("again", *command, limits=SHARE, node=node.name))
    until(
        lambda: container(stage, "again").get("restartCount", 0) >= 1, lambda: stage.kubectl("describe", "pod", "again")
    )
    until(lambda: SEEN in stage.kubectl("logs", "again"), lambda: stage.kubectl("logs", "again"))


def test_init_and_several_gpu_containers_each_have_their_share(stage: Stage, node: Node) -> None:
    """Kubelets before 1.31 fail pods whose init containers name a resource that is not on the node."""
    made = json.loads(pod("several", limits=SHARE, node=node.name))
    (first,) = made["spec"]["containers"]
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000, "nvidia.com/gpucores": 30, "nvidia.com/priority": 1}
    second = first | {"name": "second", "resources": {"limits": limits}}
    init = first | {"name": "init", "command": ["nvidia-smi"], "resources": {"limits": limits}}
    percent = {"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 70}
    third = first | {"name": "third", "command": ["nvidia-smi"], "resources": {"limits": percent}}
    made["spec"] |= {"containers": [first, second], "initContainers": [init, third]}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    running(stage, "several")
    assert SEEN in stage.kubectl("exec", "several", "-c", "main", "--", "nvidia-smi")
    assert "0MiB /  2000MiB" in stage.kubectl("exec", "several", "-c", "second", "--", "nvidia-smi")
    assert "0MiB /  2000MiB" in stage.kubectl("logs", "several", "-c", "init")
    assert "0MiB / 22937MiB" in stage.kubectl("logs", "several", "-c", "third")


def test_a_container_without_a_grant_is_refused_with_the_reason_and_tried_again(stage: Stage, node: Node) -> None:
    """Nobody placed the pod; it starts with what is granted to it later."""
    made = json.loads(pod("bound", limits=SHARE))
    made["metadata"]["labels"] = {"lamina.dev/webhook": "ignore"}
    made["spec"]["nodeName"] = node.name
    del made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"]
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(made))

    def why() -> str:
        return str(container(stage, "bound").get("state", {}).get("waiting", {}).get("message", ""))

    until(lambda: "default/bound has no grant" in why(), lambda: stage.kubectl("describe", "pod", "bound"))
    gpu = json.loads(stage.kubectl("get", "inventory", node.name, "-o", "json"))["spec"]["gpus"][0]["uuid"]
    grant(stage, "bound", node.name, gpu, 3000)
    running(stage, "bound")
    assert SEEN in sh(stage, "bound", "nvidia-smi")


def test_a_sidecar_has_its_share_beside_the_others(stage: Stage, node: Node) -> None:
    """It starts before them, and one that ends is started again while they run."""
    if stage.binaries.version < (1, 29):
        pytest.skip("init containers that go on as sidecars came with Kubernetes 1.29")
    made = json.loads(pod("beside", limits=SHARE, node=node.name))
    (main,) = made["spec"]["containers"]
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}
    sidecar = main | {"name": "sidecar", "restartPolicy": "Always", "resources": {"limits": limits}}
    init = main | {"name": "init", "command": ["nvidia-smi"]}
    made["spec"] |= {"initContainers": [sidecar, init]}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    running(stage, "beside")

    def seen(which: str) -> str:
        return stage.kubectl("exec", "beside", "-c", which, "--", "nvidia-smi")

    assert SEEN in seen("main")
    assert SEEN in stage.kubectl("logs", "beside", "-c", "init")
    assert "0MiB /  2000MiB" in seen("sidecar")
    id = container(stage, "beside", "sidecar")["containerID"].partition("//")[2]
    node.ctr("tasks", "kill", "--signal", "SIGKILL", id)
    until(
        lambda: (again := container(stage, "beside", "sidecar"))["restartCount"] == 1 and again["ready"],
        lambda: stage.kubectl("describe", "pod", "beside"),
    )
    assert "0MiB /  2000MiB" in seen("sidecar")
    assert container(stage, "beside")["restartCount"] == 0


def test_jobs_that_finish_leave_their_gpus_to_others(stage: Stage, node: Node) -> None:
    """Two pods fit at a time, so others wait for those that end; the ended ones stay, and hold nothing."""
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000}
    before = cdi_specs(node)
    command = ["gpu-load", "--seconds", "0.5", "--memory-mib", "15000"]
    spec = json.loads(pod("any", *command, limits=limits, node=node.name, restartPolicy="Never"))["spec"]
    whole = {"completions": 6, "parallelism": 6, "template": {"spec": spec}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": whole}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(job))

    def finished() -> bool:
        return stage.kubectl("get", "job", "job", "-o", "jsonpath={.status.succeeded}") == "6"

    until(finished, lambda: stage.kubectl("describe", "pods", "-l", "job-name=job"))
    stage.kubectl("apply", "-f", "-", stdin=pod("all", limits={"nvidia.com/gpu": 2}, node=node.name))
    running(stage, "all")
    assert len(stage.kubectl("get", "pods", "-l", "job-name=job", "-o", "name").split()) == 6
    until(lambda: len(cdi_specs(node) - before) == 1, lambda: f"specs stay: {cdi_specs(node) - before}")
