"""Tests of MPS that run on a lab and on the test cluster."""

import json
import re

import pytest

from lamina_lab import simgpu
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Cluster, Lab
from tests.scenarios.nvidia import GPU, SHARED, config_map, label, offers, pod, use
from tests.waiting import wait_until

CONFIG = "NVIDIA-A100-PCIE-40GB"


def share_by_mps(lab: Cluster) -> None:
    """What the document does, and then the step that it leaves out.

    Its ConfigMap has `renameByDefault` in a comment alone. Releases of NVIDIA's plugin read that as false, so the node
    offers what the document's pods request. The labels, the capacity and the log that it prints are of a file with
    true, and the tests go on with that.
    """
    text = config_map("mps-enable-config")
    lab.apply(text)
    use(lab, {"name": "mps-enable-config"})
    label(lab, CONFIG)
    offers(lab, {GPU: 20})
    wait_until(lambda: product(lab) == f"{CONFIG}-SHARED", lambda: product(lab))
    lab.apply(text.replace("# renameByDefault: false", "renameByDefault: true"))
    offers(lab, {SHARED: 20})


def product(lab: Cluster) -> str:
    labels = lab.read(f"/api/v1/nodes/{lab.node}")["metadata"]["labels"]
    return str(labels.get("nvidia.com/gpu.product", ""))


def running(lab: Lab, *names: str) -> None:
    wait_until(lambda: lab.phases() == {"Running": len(names)}, lambda: lab.kubectl("describe", "pods"))


def inside(lab: Lab, name: str, command: str) -> str:
    return lab.kubectl("exec", name, "--", "sh", "-c", command)


def load(lab: Lab, name: str, *more: str) -> str:
    return lab.kubectl("exec", name, "--", "gpu-load", "--seconds", "1", *more, check=False)


def got_a_tenth(lab: Lab, name: str, *more: str) -> bool:
    """Whether a program in the pod gets a tenth of the GPU's time; the driver's own calls take a little of it."""
    found = re.search(r"GPU 0: ([0-9.]+) %", load(lab, name, *more))
    return found is not None and 9.0 <= float(found[1]) <= 10.1


def test_s2_8_the_node_offers_its_gpus_ten_times(lab: Lab) -> None:
    inventory = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
    assert inventory["nativeResources"] == [{"resource": SHARED, "count": 20, "replicas": 10, "sharing": "mps"}]
    assert [(each["state"], each["memoryMiB"], each["threadsPercent"]) for each in inventory["mps"]] == [
        ("ready", 4096, 10)
    ] * 2

    def labels() -> dict[str, str]:
        found = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))["metadata"]["labels"]
        names = ("gpu.product", "gpu.replicas", "gpu.sharing-strategy", "mps.capable")
        return {name: found.get(f"nvidia.com/{name}", "") for name in names}

    expected = {"gpu.product": CONFIG, "gpu.replicas": "10", "gpu.sharing-strategy": "mps", "mps.capable": "true"}
    wait_until(lambda: labels() == expected, lambda: str(labels()))


def got_the_limits(logs: list[str]) -> None:
    """`logs` are those of the control daemons."""
    assert len(logs) == 2
    for log in logs:
        assert "Cmd:set_default_device_pinned_mem_limit 0 4096M" in log
        assert "Cmd:set_default_active_thread_percentage 10" in log


def test_s2_8_clients_of_one_gpu_run_at_the_same_time(lab: Lab) -> None:
    lab.apply((EXAMPLES / "nvidia" / "mps-pods.yaml").read_text())
    lab.settled("app=clients", {"Running": 3})
    machine = lab.machine

    def clients() -> list[simgpu.ProcessState]:
        return [each for gpu in simgpu.read(machine).gpus for each in gpu.processes if each.mps_percent]

    wait_until(lambda: len(clients()) == 3 and all(each.busy_ns for each in clients()), lambda: str(clients()))
    assert [(each.mps_percent, each.memory_mib) for each in clients()] == [(10, 1412)] * 3
    # Each kernel of a millisecond takes ten, and all run meanwhile: each got a tenth of the time, to the millisecond.
    before, now = simgpu.read(machine), simgpu.read(machine)
    while now.now_ns - before.now_ns < 500_000_000:
        now = simgpu.read(machine)
    then = {each.pid: each.busy_ns for gpu in before.gpus for each in gpu.processes}
    parts = [(each.busy_ns - then[each.pid]) / (now.now_ns - before.now_ns) for each in clients_of(now)]
    assert parts == pytest.approx([0.1] * 3, abs=0.01)
    held = [share for row in json.loads(lab.lamina("pods", "-o", "json").stdout) for share in row["shares"]]
    assert [(each["mode"], each["memoryMib"], each["computePercent"]) for each in held] == [("mps", 4096, 10)] * 3
    smi = inside(lab, "deploy/clients", "nvidia-smi")
    assert "M+C" in smi
    assert "E. Process" in smi


def clients_of(state: simgpu.MachineState) -> list[simgpu.ProcessState]:
    return [each for gpu in state.gpus for each in gpu.processes if each.mps_percent]


def test_s2_8_asking_two_replicas_is_refused_as_nvidia_words_it(lab: Lab) -> None:
    lab.apply(pod("greedy", resource=SHARED, count=2))
    wait_until(lambda: lab.phases() == {"Failed": 1}, lambda: str(lab.phases()))
    status = json.loads(lab.kubectl("get", "pod", "greedy", "-o", "json"))["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "maximum request size for shared resources is 1; found 2" in status["message"]
