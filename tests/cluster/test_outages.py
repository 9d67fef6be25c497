"""What holds while a part of the cluster is away, and that all goes on when it is back."""

import json
import signal
import time

import pytest

from lamina import simgpu
from tests.cluster.asking import (
    SEEN,
    SHARE,
    Object,
    allocatable,
    apply,
    cdi_specs,
    container,
    deployed,
    deployment,
    phase,
    pod,
    running,
    sh,
    until,
    why_pending,
)
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.node import Node
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage

pytestmark = pytest.mark.usefixtures("without_pods")
FULL = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 30000}
OUTAGE_S = 60.0
MANY = 16


def comes(stage: Stage, node: Node) -> str:
    """A new pod that runs in the end."""
    return deployed(stage, "comes", pod("comes", limits=SHARE, node=node.name))


def boot_id(stage: Stage, node: Node) -> str:
    return stage.kubectl("get", "node", node.name, "-o", "jsonpath={.status.nodeInfo.bootID}")


def test_without_an_agent_nothing_starts_and_what_runs_goes_on(stage: Stage, lamina: Processes, node: Node) -> None:
    apply(stage, "runs", node.name)
    running(stage, "runs")
    agent = lamina.agents[node.name]
    agent.kill()
    assert SEEN in sh(stage, "runs", "nvidia-smi")
    until(
        lambda: allocatable(stage, node.name) == 0, lambda: f"{node.name} still offers {allocatable(stage, node.name)}"
    )
    agent.start()
    lamina.wait()
    comes(stage, node)
    assert container(stage, "runs")["restartCount"] == 0


def test_a_share_is_placed_once_its_node_offers_devices_again(stage: Stage, lamina: Processes, node: Node) -> None:
    agent = lamina.agents[node.name]
    agent.kill()
    until(
        lambda: allocatable(stage, node.name) == 0, lambda: f"{node.name} still offers {allocatable(stage, node.name)}"
    )
    apply(stage, "waits", node.name)
    until(lambda: "Insufficient nvidia.com/gpu" in why_pending(stage, "waits"), lambda: why_pending(stage, "waits"))
    agent.start()
    lamina.wait()
    running(stage, "waits", patience_s=30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kubelet_restarts_under_a_running_pod(stage: Stage, lamina: Processes, node: Node, number: int) -> None:
    apply(stage, "runs", node.name)
    running(stage, "runs")
    node.kubelet.restart(number)
    assert SEEN in sh(stage, comes(stage, node), "nvidia-smi")
    assert (phase(stage, "runs"), container(stage, "runs")["restartCount"]) == ("Running", 0)


def test_containerd_restarts_under_a_running_pod(stage: Stage, node: Node) -> None:
    apply(stage, "runs", node.name)
    running(stage, "runs")
    node.containerd.stop(signal.SIGKILL)
    node.start_containerd()
    comes(stage, node)
    assert container(stage, "runs")["restartCount"] == 0
    assert SEEN in sh(stage, "runs", "nvidia-smi")


def test_a_node_reboots_with_a_gpu_pod(stage: Stage, lamina: Processes, node: Node) -> None:
    """Kubelet starts the pod again, or fails it because its devices are not registered yet; then comes another."""
    whole = pod("comes", limits={"nvidia.com/gpu": 1}, node=node.name)
    before = container(stage, deployed(stage, "comes", whole))["containerID"]
    boot, specs = boot_id(stage, node), cdi_specs(node)
    node.reboot()
    assert cdi_specs(node) == set() != specs
    assert node.room.run("cat", "/var/lib/lamina/record.json")
    lamina.reboot(node)

    def another() -> Object:
        pods = json.loads(stage.kubectl("get", "pods", "-l", "app=comes", "-o", "json"))["items"]
        found = [each for each in pods for status in each["status"].get("containerStatuses", [])
                 if status.get("ready") and status["containerID"] != before]  # fmt: skip
        return found[0] if found else {}

    until(lambda: bool(another()), lambda: stage.kubectl("describe", "pods", "-l", "app=comes"))
    assert "0MiB / 32768MiB" in sh(stage, another()["metadata"]["name"], "nvidia-smi")
    assert boot_id(stage, node) != boot
    assert len(cdi_specs(node)) == 1


def test_without_the_control_part_gpu_pods_get_nothing_and_others_do_not_notice(
    stage: Stage, lamina: Processes, node: Node
) -> None:
    """Servers with match conditions (1.28) refuse the pod; older ones let it pass, and the agent does not start it."""

    def told() -> str:
        return stage.kubectl("describe", "pod", "nothing")

    lamina.control.kill()
    try:
        if stage.binaries.version >= (1, 28):
            with pytest.raises(Unavailable, match=r"lamina\.dev"):
                apply(stage, "nothing", node.name)
        else:
            apply(stage, "nothing", node.name)
            until(lambda: "default/nothing has no grant" in told(), told)
        stage.kubectl("apply", "-f", "-", stdin=pod("plain", node=node.name))
        running(stage, "plain")
    finally:
        lamina.control.start()
        lamina.wait()
    comes(stage, node)


def test_the_scheduler_restarts_while_a_pod_waits(stage: Stage, lamina: Processes, node: Node) -> None:
    large = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 30000}
    stage.kubectl("apply", "-f", "-", stdin=pod("full", limits=large, node=node.name))
    running(stage, "full")
    apply(stage, "waits", node.name)
    lamina.scheduler.restart(signal.SIGKILL)
    stage.kubectl("delete", "pod", "full", "--grace-period=0", "--force")
    running(stage, "waits")


def test_the_api_server_is_away_for_a_minute(stage: Stage, lamina: Processes, node: Node) -> None:
    """Who runs is held to its limits, who waits is placed afterwards, and nobody forgets anything.

    A container that ends meanwhile starts again at the latest when the agent can read its grant again.
    """
    exceeds = "while :; do nvidia-smi; gpu-load --seconds 0.1 --memory-mib 4000; echo and so on; sleep 1; done"
    apply(stage, "runs", node.name, "sh", "-c", exceeds)
    apply(stage, "ends", node.name)
    running(stage, "runs", "ends")
    stage.kubectl("apply", "-f", "-", stdin=pod("waits", limits=FULL, node=node.name))
    until(lambda: why_pending(stage, "waits") != "", lambda: stage.kubectl("describe", "pod", "waits"))
    grants, parts = grants_of(stage), [lamina.control, lamina.scheduler, *lamina.agents.values()]
    pids = [part.pid for part in parts]
    ends = container(stage, "ends")["containerID"].partition("//")[2]
    stage.control.apiserver.kill()
    try:
        node.ctr("tasks", "kill", "--signal", "SIGKILL", ends)
        time.sleep(OUTAGE_S / 2)
        during = output(node, "runs").count(SEEN)
        time.sleep(OUTAGE_S / 2)
        told = output(node, "runs")
    finally:
        stage.control.apiserver.start()
        stage.control.wait()
    assert told.count(SEEN) > during, "it did not go on"
    assert told.count("out of memory") >= told.count("and so on") > 0
    assert "32768MiB" not in told
    assert [part.pid for part in parts] == pids
    assert grants_of(stage) == grants
    until(lambda: container(stage, "ends").get("restartCount") == 1, lambda: stage.kubectl("describe", "pod", "ends"))
    running(stage, "runs", "ends")
    assert SEEN in sh(stage, "ends", "nvidia-smi")
    assert container(stage, "runs")["restartCount"] == 0
    stage.kubectl("delete", "pod", "runs", "ends", "--grace-period=0", "--force")
    running(stage, "waits")
    apply(stage, "other", stage.nodes[1].name)
    running(stage, "other")


def grants_of(stage: Stage) -> dict[str, Object]:
    """What is granted, by the UIDs of pods."""
    items = json.loads(stage.kubectl("get", "grants", "-o", "json"))["items"]
    return {each["spec"]["podUID"]: each["spec"] for each in items}


def output(node: Node, name: str) -> str:
    """What the pod's container has printed, as the node has it."""
    return node.room.run("sh", "-c", f"cat /var/log/pods/default_{name}_*/main/*.log")


def test_plugins_restart_under_load(stage: Stage, lamina: Processes, node: Node) -> None:
    """Kubelet fails pods that come while the plugin is away; their controller makes others, until all are there."""
    each = pod("many", "sh", "-c", "nvidia-smi; sleep infinity", limits=SHARE, node=node.name)
    stage.kubectl("apply", "-f", "-", stdin=deployment("many", each, MANY))
    agent = lamina.agents[node.name]
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        wait_for(stage, min(MANY, started(stage) + 1))
        agent.restart(number)
    wait_for(stage, MANY)
    running_ones = ("get", "pods", "-l", "app=many", "--field-selector=status.phase=Running", "-o", "name")
    for name in stage.kubectl(*running_ones).split():
        until(lambda name=name: "MiB /" in stage.kubectl("logs", name), lambda: "nothing is printed")
        assert SEEN in stage.kubectl("logs", name)


def wait_for(stage: Stage, count: int) -> None:
    until(lambda: started(stage) >= count, lambda: stage.kubectl("describe", "pods", "-l", "app=many"))


def started(stage: Stage) -> int:
    pods = stage.kubectl("get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].status.phase}")
    return pods.split().count("Running")


def test_a_sick_gpu_gets_nobody_and_comes_back(stage: Stage, node: Node) -> None:
    """Kubelet counts its tickets out and in again; who is on it stays."""
    first, second = (gpu.uuid for gpu in simgpu.read(node.gpus.machine).gpus)
    healthy = allocatable(stage, node.name)
    wanted = {"metadata": {"name": "stays", "annotations": {"nvidia.com/use-gpuuuid": first}}}
    made = json.loads(pod("stays", limits=SHARE, node=node.name))
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(made | wanted))
    running(stage, "stays")
    simgpu.set_lost(node.gpus.machine, first, lost=True)
    try:
        until(
            lambda: allocatable(stage, node.name) == healthy // 2, lambda: stage.kubectl("describe", "node", node.name)
        )
        wanted["metadata"]["name"] = "waits"
        stage.kubectl("apply", "-f", "-", stdin=json.dumps(made | wanted))
        apply(stage, "other", node.name)
        running(stage, "other")
        assert second in sh(stage, "other", "nvidia-smi -L")
        until(lambda: "does not answer" in why_pending(stage, "waits"), lambda: why_pending(stage, "waits"))
        events = stage.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
        assert "GpuUnhealthy" in events
    finally:
        simgpu.set_lost(node.gpus.machine, first, lost=False)
    until(lambda: allocatable(stage, node.name) == healthy, lambda: stage.kubectl("describe", "node", node.name))
    running(stage, "waits")
    assert first in sh(stage, "waits", "nvidia-smi -L")
    assert container(stage, "stays")["restartCount"] == 0
    assert SEEN in sh(stage, "stays", "nvidia-smi")
