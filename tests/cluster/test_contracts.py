"""What Lamina counts on in kubelet, containerd and the scheduler, and what holds while one of them is away."""

import json
import signal

import pytest

from tests.cluster.asking import Object, deployed, got, phase, pod, running, sh, until, why_pending
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.node import Node
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage

pytestmark = pytest.mark.usefixtures("without_pods")
SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}
SEEN = "0MiB /  3000MiB"


@pytest.fixture
def node(stage: Stage) -> Node:
    return stage.nodes[0]


def apply(stage: Stage, name: str, node: Node) -> None:
    stage.kubectl("apply", "-f", "-", stdin=pod(name, limits=SHARE, node=node.name))


def comes(stage: Stage, node: Node) -> str:
    """A new pod that runs in the end."""
    return deployed(stage, "comes", pod("comes", limits=SHARE, node=node.name))


def container(stage: Stage, name: str) -> Object:
    (status,) = got(stage, name)["status"].get("containerStatuses") or [{}]
    return dict(status)


def cdi_specs(node: Node) -> set[str]:
    return {*node.room.run("ls", "/var/run/cdi").split()}


def test_each_container_has_a_spec_of_its_own_and_it_goes_with_the_pod(stage: Stage, node: Node) -> None:
    before = cdi_specs(node)
    for name in ("first", "second"):
        apply(stage, name, node)
    running(stage, "first", "second")
    assert len(cdi_specs(node) - before) == 2
    stage.kubectl("delete", "pod", "first", "second", "--grace-period=0", "--force")
    until(lambda: cdi_specs(node) == before, lambda: f"specs stay: {cdi_specs(node) - before}")


def test_without_an_agent_nothing_starts_and_what_runs_goes_on(stage: Stage, lamina: Processes, node: Node) -> None:
    apply(stage, "runs", node)
    running(stage, "runs")
    agent = lamina.agents[node.name]
    agent.kill()
    assert SEEN in sh(stage, "runs", "nvidia-smi")
    until(lambda: allocatable(stage, node) == 0, lambda: f"{node.name} still offers {allocatable(stage, node)}")
    agent.start()
    lamina.wait()
    comes(stage, node)
    assert container(stage, "runs")["restartCount"] == 0


def test_a_share_is_placed_once_its_node_offers_devices_again(stage: Stage, lamina: Processes, node: Node) -> None:
    agent = lamina.agents[node.name]
    agent.kill()
    until(lambda: allocatable(stage, node) == 0, lambda: f"{node.name} still offers {allocatable(stage, node)}")
    apply(stage, "waits", node)
    until(lambda: "Insufficient nvidia.com/gpu" in why_pending(stage, "waits"), lambda: why_pending(stage, "waits"))
    agent.start()
    lamina.wait()
    running(stage, "waits", patience_s=30)


def allocatable(stage: Stage, node: Node) -> int:
    return int(stage.kubectl("get", "node", node.name, "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}") or 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kubelet_restarts_under_a_running_pod(stage: Stage, lamina: Processes, node: Node, number: int) -> None:
    apply(stage, "runs", node)
    running(stage, "runs")
    node.kubelet.restart(number)
    assert SEEN in sh(stage, comes(stage, node), "nvidia-smi")
    assert (phase(stage, "runs"), container(stage, "runs")["restartCount"]) == ("Running", 0)


def test_containerd_restarts_under_a_running_pod(stage: Stage, node: Node) -> None:
    apply(stage, "runs", node)
    running(stage, "runs")
    node.containerd.stop(signal.SIGKILL)
    node.start_containerd()
    comes(stage, node)
    assert container(stage, "runs")["restartCount"] == 0
    assert SEEN in sh(stage, "runs", "nvidia-smi")


def test_a_container_that_is_started_again_has_the_same_share(stage: Stage, node: Node) -> None:
    command = ["sh", "-c", "nvidia-smi; sleep 3"]
    stage.kubectl("apply", "-f", "-", stdin=pod("again", *command, limits=SHARE, node=node.name))
    until(
        lambda: container(stage, "again").get("restartCount", 0) >= 1, lambda: stage.kubectl("describe", "pod", "again")
    )
    until(lambda: SEEN in stage.kubectl("logs", "again"), lambda: stage.kubectl("logs", "again"))


def test_a_node_reboots_with_a_gpu_pod(stage: Stage, lamina: Processes, node: Node) -> None:
    """Kubelet starts the pod again, or fails it because its devices are not registered yet; then comes another."""
    whole = pod("comes", limits={"nvidia.com/gpu": 1}, node=node.name)
    before = container(stage, deployed(stage, "comes", whole))["containerID"]
    node.reboot()
    lamina.reboot(node)

    def another() -> Object:
        pods = json.loads(stage.kubectl("get", "pods", "-l", "app=comes", "-o", "json"))["items"]
        found = [each for each in pods for status in each["status"].get("containerStatuses", [])
                 if status.get("ready") and status["containerID"] != before]  # fmt: skip
        return found[0] if found else {}

    until(lambda: bool(another()), lambda: stage.kubectl("describe", "pods", "-l", "app=comes"))
    assert "0MiB / 32768MiB" in sh(stage, another()["metadata"]["name"], "nvidia-smi")


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
                apply(stage, "nothing", node)
        else:
            apply(stage, "nothing", node)
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
    apply(stage, "waits", node)
    lamina.scheduler.restart(signal.SIGKILL)
    stage.kubectl("delete", "pod", "full", "--grace-period=0", "--force")
    running(stage, "waits")


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
