"""What holds while a part of the cluster is away, and that all goes on when it is back."""

import json
import signal
import time

import pytest

from lamina_lab import simgpu
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes
from tests.cluster.queries import (
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
    why_pending,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("without_pods")
FULL = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 30000}
OUTAGE_S = 60.0
MANY = 16


def comes(cluster: RealCluster, node: RealNode) -> str:
    """A new pod that runs in the end."""
    return deployed(cluster, "comes", pod("comes", limits=SHARE, node=node.name))


def boot_id(cluster: RealCluster, node: RealNode) -> str:
    return cluster.kubectl("get", "node", node.name, "-o", "jsonpath={.status.nodeInfo.bootID}")


def test_without_an_agent_nothing_starts_and_what_runs_goes_on(
    cluster: RealCluster, lamina: Processes, node: RealNode
) -> None:
    apply(cluster, "runs", node.name)
    running(cluster, "runs")
    agent = lamina.agents[node.name]
    agent.kill()
    assert SEEN in sh(cluster, "runs", "nvidia-smi")
    wait_until(
        lambda: allocatable(cluster, node.name) == 0,
        lambda: f"{node.name} still offers {allocatable(cluster, node.name)}",
    )
    agent.start()
    lamina.wait()
    comes(cluster, node)
    assert container(cluster, "runs")["restartCount"] == 0


def test_a_share_is_placed_once_its_node_offers_devices_again(
    cluster: RealCluster, lamina: Processes, node: RealNode
) -> None:
    agent = lamina.agents[node.name]
    agent.kill()
    wait_until(
        lambda: allocatable(cluster, node.name) == 0,
        lambda: f"{node.name} still offers {allocatable(cluster, node.name)}",
    )
    apply(cluster, "waits", node.name)
    wait_until(
        lambda: "Insufficient nvidia.com/gpu" in why_pending(cluster, "waits"), lambda: why_pending(cluster, "waits")
    )
    agent.start()
    lamina.wait()
    running(cluster, "waits", patience_s=30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kubelet_restarts_under_a_running_pod(
    cluster: RealCluster, lamina: Processes, node: RealNode, number: int
) -> None:
    apply(cluster, "runs", node.name)
    running(cluster, "runs")
    node.kubelet.restart(number)
    assert SEEN in sh(cluster, comes(cluster, node), "nvidia-smi")
    assert (phase(cluster, "runs"), container(cluster, "runs")["restartCount"]) == ("Running", 0)


def test_containerd_restarts_under_a_running_pod(cluster: RealCluster, node: RealNode) -> None:
    apply(cluster, "runs", node.name)
    running(cluster, "runs")
    node.containerd.stop(signal.SIGKILL)
    node.start_containerd()
    comes(cluster, node)
    assert container(cluster, "runs")["restartCount"] == 0
    assert SEEN in sh(cluster, "runs", "nvidia-smi")


def test_a_node_reboots_with_a_gpu_pod(cluster: RealCluster, lamina: Processes, node: RealNode) -> None:
    """Kubelet starts the pod again, or fails it because its devices are not registered yet; then comes another."""
    whole = pod("comes", limits={"nvidia.com/gpu": 1}, node=node.name)
    before = container(cluster, deployed(cluster, "comes", whole))["containerID"]
    boot, specs = boot_id(cluster, node), cdi_specs(node)
    node.reboot()
    assert cdi_specs(node) == set() != specs
    assert node.sandbox.run("cat", "/var/lib/lamina/record.json")
    lamina.reboot(node)

    def another() -> Object:
        pods = json.loads(cluster.kubectl("get", "pods", "-l", "app=comes", "-o", "json"))["items"]
        found = [each for each in pods for status in each["status"].get("containerStatuses", [])
                 if status.get("ready") and status["containerID"] != before]  # fmt: skip
        return found[0] if found else {}

    wait_until(lambda: bool(another()), lambda: cluster.kubectl("describe", "pods", "-l", "app=comes"))
    assert "0MiB /  32768MiB" in sh(cluster, another()["metadata"]["name"], "nvidia-smi")
    assert boot_id(cluster, node) != boot
    assert len(cdi_specs(node)) == 1


def test_without_controller_and_admission_gpu_pods_get_nothing_and_others_do_not_notice(
    cluster: RealCluster, lamina: Processes, node: RealNode
) -> None:
    """Servers with match conditions (1.28) refuse the pod; older ones let it pass, and the agent does not start it."""

    def reported() -> str:
        return cluster.kubectl("describe", "pod", "nothing")

    stopped = (lamina.controller, lamina.admission)
    for part in stopped:
        part.kill()
    try:
        if cluster.binaries.version >= (1, 28):
            with pytest.raises(Unavailable, match=r"lamina\.dev"):
                apply(cluster, "nothing", node.name)
        else:
            apply(cluster, "nothing", node.name)
            wait_until(lambda: "default/nothing has no grant" in reported(), reported)
        cluster.kubectl("apply", "-f", "-", stdin=pod("plain", node=node.name))
        running(cluster, "plain")
    finally:
        for part in stopped:
            part.start()
        lamina.wait()
    comes(cluster, node)


def test_the_scheduler_restarts_while_a_pod_waits(cluster: RealCluster, lamina: Processes, node: RealNode) -> None:
    large = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 30000}
    cluster.kubectl("apply", "-f", "-", stdin=pod("full", limits=large, node=node.name))
    running(cluster, "full")
    apply(cluster, "waits", node.name)
    lamina.scheduler.restart(signal.SIGKILL)
    cluster.kubectl("delete", "pod", "full", "--grace-period=0", "--force")
    running(cluster, "waits")


def test_the_api_server_is_away_for_a_minute(cluster: RealCluster, lamina: Processes, node: RealNode) -> None:
    """Who runs is held to its limits, who waits is placed afterwards, and no one forgets anything.

    A container that ends meanwhile starts again at the latest when the agent can read its grant again.
    """
    exceeds = "while :; do nvidia-smi; gpu-load --seconds 0.1 --memory-mib 4000; echo and so on; sleep 1; done"
    apply(cluster, "runs", node.name, "sh", "-c", exceeds)
    apply(cluster, "ends", node.name)
    running(cluster, "runs", "ends")
    cluster.kubectl("apply", "-f", "-", stdin=pod("waits", limits=FULL, node=node.name))
    wait_until(lambda: why_pending(cluster, "waits") != "", lambda: cluster.kubectl("describe", "pod", "waits"))
    grants, parts = grants_of(cluster), [lamina.controller, lamina.scheduler, *lamina.agents.values()]
    pids = [part.pid for part in parts]
    ends = container(cluster, "ends")["containerID"].partition("//")[2]
    cluster.control.apiserver.kill()
    try:
        node.ctr("tasks", "kill", "--signal", "SIGKILL", ends)
        time.sleep(OUTAGE_S / 2)
        during = output(node, "runs").count(SEEN)
        time.sleep(OUTAGE_S / 2)
        reported = output(node, "runs")
    finally:
        cluster.control.apiserver.start()
        cluster.control.wait()
    assert reported.count(SEEN) > during, "it did not go on"
    assert reported.count("out of memory") >= reported.count("and so on") > 0
    assert "32768MiB" not in reported
    assert [part.pid for part in parts] == pids
    assert grants_of(cluster) == grants
    wait_until(
        lambda: container(cluster, "ends").get("restartCount") == 1, lambda: cluster.kubectl("describe", "pod", "ends")
    )
    running(cluster, "runs", "ends")
    assert SEEN in sh(cluster, "ends", "nvidia-smi")
    assert container(cluster, "runs")["restartCount"] == 0
    cluster.kubectl("delete", "pod", "runs", "ends", "--grace-period=0", "--force")
    running(cluster, "waits")
    apply(cluster, "other", cluster.nodes[1].name)
    running(cluster, "other")


def grants_of(cluster: RealCluster) -> dict[str, Object]:
    """What is granted, by the UIDs of pods."""
    items = json.loads(cluster.kubectl("get", "grants", "-o", "json"))["items"]
    return {each["spec"]["podUID"]: each["spec"] for each in items}


def output(node: RealNode, name: str) -> str:
    """What the pod's container has printed, as the node has it."""
    return node.sandbox.run("sh", "-c", f"cat /var/log/pods/default_{name}_*/main/*.log")


def test_plugins_restart_under_load(cluster: RealCluster, lamina: Processes, node: RealNode) -> None:
    """Kubelet fails pods that come while the plugin is away; their controller makes others, until all are there."""
    each = pod("many", "sh", "-c", "nvidia-smi; sleep infinity", limits=SHARE, node=node.name)
    cluster.kubectl("apply", "-f", "-", stdin=deployment("many", each, MANY))
    agent = lamina.agents[node.name]
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        wait_for(cluster, min(MANY, started(cluster) + 1))
        agent.restart(number)
    wait_for(cluster, MANY)
    running_ones = ("get", "pods", "-l", "app=many", "--field-selector=status.phase=Running", "-o", "name")
    for name in cluster.kubectl(*running_ones).split():
        wait_until(lambda name=name: "MiB /" in cluster.kubectl("logs", name), lambda: "nothing is printed")
        assert SEEN in cluster.kubectl("logs", name)


def wait_for(cluster: RealCluster, count: int) -> None:
    wait_until(lambda: started(cluster) >= count, lambda: cluster.kubectl("describe", "pods", "-l", "app=many"))


def started(cluster: RealCluster) -> int:
    pods = cluster.kubectl("get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].status.phase}")
    return pods.split().count("Running")


def test_an_unhealthy_gpu_gets_no_pods_and_recovers(cluster: RealCluster, node: RealNode) -> None:
    """Kubelet counts its tickets out and in again; who is on it stays."""
    first, second = (gpu.uuid for gpu in simgpu.read(node.gpus.machine).gpus)
    healthy = allocatable(cluster, node.name)
    wanted = {"metadata": {"name": "stays", "annotations": {"nvidia.com/use-gpuuuid": first}}}
    made = json.loads(pod("stays", limits=SHARE, node=node.name))
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made | wanted))
    running(cluster, "stays")
    simgpu.set_lost(node.gpus.machine, first, lost=True)
    try:
        wait_until(
            lambda: allocatable(cluster, node.name) == healthy // 2,
            lambda: cluster.kubectl("describe", "node", node.name),
        )
        wanted["metadata"]["name"] = "waits"
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made | wanted))
        apply(cluster, "other", node.name)
        running(cluster, "other")
        assert second in sh(cluster, "other", "nvidia-smi -L")
        wait_until(lambda: "does not answer" in why_pending(cluster, "waits"), lambda: why_pending(cluster, "waits"))
        events = cluster.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
        assert "GpuUnhealthy" in events
    finally:
        simgpu.set_lost(node.gpus.machine, first, lost=False)
    wait_until(
        lambda: allocatable(cluster, node.name) == healthy, lambda: cluster.kubectl("describe", "node", node.name)
    )
    running(cluster, "waits")
    assert first in sh(cluster, "waits", "nvidia-smi -L")
    assert container(cluster, "stays")["restartCount"] == 0
    assert SEEN in sh(cluster, "stays", "nvidia-smi")
