"""S2: MPS as the document about GPU sharing on OpenShift sets it up, with its manifests as they stand."""

import json
import os
import signal
from pathlib import Path

from lamina_lab import simgpu
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.scenarios.mps import CONFIG, got_a_tenth, got_the_limits, inside, load, running
from tests.scenarios.nvidia import GPU, SHARED, allocatable, label, node_events, offers, pod, publish, use
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["S2 MPS"]


def node_folder(lab: Lab) -> Path:
    return lab.root / lab.name / "n" / "0"


def daemons(lab: Lab) -> dict[str, int]:
    """The pids of the control daemons by their GPU, once they have written their files."""
    files = sorted((node_folder(lab) / "mps").glob("*/pipe/nvidia-cuda-mps-control.pid"))
    return {file.parent.parent.name: int(pid) for file in files if (pid := file.read_text())}


def states(lab: Lab) -> list[str]:
    spec = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
    return [each["state"] for each in spec.get("mps", [])]


globals().update(ROWS.tests)


def test_s2_8_each_daemon_gets_the_limits(lab: Lab) -> None:
    got_the_limits([path.read_text() for path in (node_folder(lab) / "mps").glob("*/log/control.log")])
    wait_until(lambda: node_events(lab, "MpsReady"), lab.described)


def test_s2_8_a_pod_is_a_client_with_its_part(lab: Lab) -> None:
    lab.apply(pod("client", resource=SHARED))
    running(lab, "client")
    pipe = Path(inside(lab, "client", "echo $CUDA_MPS_PIPE_DIRECTORY").strip())
    assert pipe.parent.parent == node_folder(lab) / "mps"
    assert inside(lab, "client", "echo $NVIDIA_VISIBLE_DEVICES").strip() == pipe.parent.name
    assert got_a_tenth(lab, "client", "--memory-mib", "3000"), "though no one else is there"
    assert "out of memory" in load(lab, "client", "--memory-mib", "4096")
    spec = next((node_folder(lab) / "cdi").glob("lamina.dev-ticket_*.json"))
    edits = json.loads(spec.read_text())["devices"][0]["containerEdits"]
    assert f"CUDA_MPS_PIPE_DIRECTORY=/mps/{SHARED}/pipe" in edits["env"]
    mounted = {each["containerPath"]: each["hostPath"] for each in edits["mounts"]}
    gpu = f"/var/run/nvidia-container-devices/{pipe.parent.name}"
    assert mounted == {f"/mps/{SHARED}/pipe": str(pipe), "/dev/shm": str(pipe.parent / "shm"), gpu: "/dev/null"}


def test_s2_8_a_killed_daemon_comes_back_and_a_killed_agent_takes_it_over(lab: Lab) -> None:
    before = daemons(lab)
    (first, second), agent = before, agent_pid(lab)
    os.kill(before[first], signal.SIGKILL)
    wait_until(lambda: daemons(lab).get(first, 0) not in (0, before[first]), lambda: str(daemons(lab)))
    wait_until(lambda: states(lab) == ["ready", "ready"], lambda: str(states(lab)))
    lab.apply(pod("client", resource=SHARED))
    running(lab, "client")
    after = daemons(lab)
    os.kill(agent, signal.SIGKILL)
    wait_until(lambda: agent_pid(lab) not in (0, agent), lambda: "no agent")
    assert got_a_tenth(lab, "client"), "a client needs no agent"
    wait_until(lambda: states(lab) == ["ready", "ready"], lambda: str(states(lab)))
    assert daemons(lab) == after
    assert after[second] == before[second], "one GPU's daemon is no other's"
    assert "2 GPUs are served" in lab.lamina("doctor", "--all").stdout


def test_a_program_that_uses_mps_outlives_the_agent_and_on_a_plain_node_the_service(lab: Lab) -> None:
    lab.apply(pod("steady", "gpu-load", "--seconds", "1000", resource=SHARED))
    running(lab, "steady")

    def clients() -> set[int]:
        """Without those that have ended, which are there until another process looks for them."""
        gpus = simgpu.read(lab.machine).gpus
        return {each.pid for gpu in gpus for each in gpu.processes if each.mps_percent and alive(each.pid)}

    program, before = wait_until(clients, "no client works"), daemons(lab)
    for component in ("agent", "mps"):
        killed = component_pid(lab, component)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda c=component, k=killed: component_pid(lab, c) not in (0, k), lambda c=component: f"no {c}")
    wait_until(lambda: states(lab) == ["ready", "ready"], lambda: str(states(lab)))
    assert (clients(), daemons(lab)) == (program, before)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended may be there until its parent reaps it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def agent_pid(lab: Lab) -> int:
    return component_pid(lab, "agent")


def component_pid(lab: Lab, name: str) -> int:
    """The process of a component on the node; 0 while there is none."""
    wanted = str(node_folder(lab) / "mps.sock").encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if name.encode() in words and wanted in words:
                return int(entry.name)
    return 0


def test_a_gpu_with_a_share_waits_and_says_for_whom(lab: Lab) -> None:
    use(lab, {"name": "mps-enable-config", "default": ""})
    label(lab, "")
    wait_until(lambda: states(lab) == [], lambda: str(states(lab)))
    assert daemons(lab) == {}
    lab.apply(pod("shares", **{"nvidia.com/gpumem": 1000}))
    running(lab, "shares")
    label(lab, CONFIG)
    wait_until(lambda: sorted(states(lab)) == ["ready", "waiting"], lambda: str(states(lab)))
    wait_until(lambda: allocatable(lab).get(SHARED) == 10, lambda: str(allocatable(lab)))
    spec = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
    assert [each["reason"] for each in spec["mps"] if "reason" in each] == ["pod default/shares is using the GPU"]
    assert "pod default/shares is using the GPU" in lab.lamina("doctor", "--all").stdout
    lab.kubectl("delete", "pod", "shares", "--grace-period=1")
    offers(lab, {SHARED: 20})


def test_the_example_is_what_it_says(lab: Lab) -> None:
    lab.kubectl("apply", "-f", str(EXAMPLES / "nvidia" / "mps.yaml"))
    label(lab, "mps")
    offers(lab, {SHARED: 20})


def test_with_equal_memory_a_container_is_held_as_well_as_its_processes(lab: Lab) -> None:
    reported = json.dumps({"data": {"lamina.yaml": "nativeDevices: {replicaMemory: equal}"}})
    lab.kubectl("patch", "configmap", "lamina", "-n", "lamina-system", "--type=merge", "-p", reported)
    command = "gpu-load --seconds 1000 --memory-mib 2000 & exec gpu-load --seconds 1000 --memory-mib 1"

    def held() -> bool:
        """Whether a pod made now is; the agent takes the configuration up in its own time, and kubelet fails a bare pod
        that comes while its plugin registers again."""
        lab.kubectl("delete", "pod", "two", "--ignore-not-found", "--grace-period=1")
        lab.apply(pod("two", "sh", "-c", command, resource=SHARED))
        wait_until(lambda: phase() in ("Running", "Failed"), lambda: lab.kubectl("describe", "pod", "two"))
        return phase() == "Running" and "libcuda" in inside(lab, "two", "echo $LD_PRELOAD")

    def phase() -> str:
        return lab.kubectl("get", "pod", "two", "-o", "jsonpath={.status.phase}")

    wait_until(held, lambda: "the facade is not in the container")
    wait_until(
        lambda: " 2268MiB /  4096MiB" in inside(lab, "two", "nvidia-smi"), lambda: inside(lab, "two", "nvidia-smi")
    )
    assert "out of memory" in load(lab, "two", "--memory-mib", "2000"), "one process alone would have had it"


def test_a_configuration_that_mps_cannot_serve_is_refused_and_the_old_one_stays(lab: Lab) -> None:
    sharing = {"mps": {"resources": [{"name": GPU, "replicas": 49}]}}
    publish(lab, "too-many", {"default": json.dumps({"version": "v1", "sharing": sharing})})
    use(lab, {"name": "too-many", "default": "default"})
    label(lab, "")
    refused = "invalid device maximum allowed replicas exceeded: 49 > 48"
    wait_until(lambda: any(refused in each for each in node_events(lab, "ConfigurationRefused")), lambda: "no event")
    assert states(lab) == ["ready", "ready"]


def test_s2_10_a_reset_leaves_no_daemon_behind(lab: Lab) -> None:
    lab.apply(pod("client", resource=SHARED))
    running(lab, "client")
    assert "client" in lab.lamina("reset", "--yes").stderr
    pids = daemons(lab)
    lab.kubectl("delete", "pod", "client", "--grace-period=1")
    reset = lab.lamina("reset", "--yes")
    assert reset.returncode == 0, reset.stderr
    assert "All agents have stopped offering GPUs." in reset.stdout
    assert daemons(lab) == {}
    wait_until(lambda: not any(map(alive, pids.values())), lambda: f"daemons stay: {pids}")
    assert list((node_folder(lab) / "mps").iterdir()) == []
