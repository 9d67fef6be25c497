"""Tests of 4paradigm's k8s-vgpu-scheduler that run on a lab and on the test cluster."""

import json
import re

import pytest

from lamina_lab import simgpu
from tests.scenarios.labs import Lab
from tests.seeds import manifests, seed, with_amount
from tests.waiting import wait_until

APP = "app=vgpu-test"


def gpu_smi_line(text: str) -> str:
    """The memory column of the first GPU in nvidia-smi's table."""
    found = re.search(r"\|\s+(\d+MiB / +\d+MiB) \|", text)
    assert found, text
    return re.sub(r" +", " ", found.group(1))


@pytest.fixture(scope="module")
def ten_replicas() -> str:
    """10 replicas of gpu 1, gpumem 10000, gpucores 10."""
    return manifests(seed("004"))[0]


@pytest.fixture(scope="module")
def one_allocating() -> str:
    """1 replica of 3000 MiB that runs nvidia-smi, then a program that needs 2000 MiB."""
    return manifests(seed("004"))[1]


@pytest.fixture(scope="module")
def five_large() -> str:
    """5 replicas of 16000 MiB."""
    return manifests(seed("004"))[2]


def test_s4_1_memory_is_the_limit(lab: Lab, ten_replicas: str) -> None:
    lab.apply(ten_replicas)
    lab.settled(APP, {"Pending": 4, "Running": 6})
    waiting = next(pod for pod in lab.pods(APP) if pod["status"]["phase"] == "Pending")
    name = waiting["metadata"]["name"]
    reason = "10000 MiB"
    assert reason in lab.lamina("why", name).stdout
    assert "2768 MiB" in lab.lamina("why", name).stdout
    events = lab.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json")
    messages = [event["message"] for event in json.loads(events)["items"] if event["reason"] == "FailedScheduling"]
    assert any("2768 MiB" in message for message in messages), messages


def test_s4_2_compute_is_the_limit(lab: Lab, ten_replicas: str) -> None:
    manifest = with_amount(with_amount(ten_replicas, "nvidia.com/gpumem", 5000), "nvidia.com/gpucores", 30)
    lab.apply(manifest)
    lab.settled(APP, {"Pending": 4, "Running": 6})


def test_s4_4_out_of_memory_is_cuda_error_2_and_one_line(lab: Lab, one_allocating: str) -> None:
    lab.apply(with_amount(one_allocating, "nvidia.com/gpumem", 1000))
    pod = lab.running_pod(APP)
    wait_until(lambda: "RuntimeError" in lab.kubectl("logs", pod), lambda: lab.kubectl("logs", pod))
    log = lab.kubectl("logs", pod)
    assert gpu_smi_line(log) == "0MiB / 1000MiB"
    assert "No running processes found" in log
    assert "Device 0 OOM 1559232512 / 1048576000" in log
    assert "out of memory" in log
    assert "unrecognized error code" not in log


def test_s4_5_the_same_program_runs_within_its_limit(lab: Lab, one_allocating: str) -> None:
    lab.apply(one_allocating)
    pod = lab.running_pod(APP)
    wait_until(lambda: "GPU is available" in lab.kubectl("logs", pod), lambda: lab.kubectl("logs", pod))
    log = lab.kubectl("logs", pod)
    assert gpu_smi_line(log) == "0MiB / 3000MiB"
    assert "OOM" not in log
    assert "Error" not in log
    assert gpu_smi_line(lab.kubectl("exec", pod, "--", "nvidia-smi")) == "0MiB / 3000MiB"


def test_s4_10_five_replicas_of_16000_mib_need_scaling(lab: Lab, five_large: str) -> None:
    lab.apply(five_large)
    lab.settled(APP, {"Pending": 1, "Running": 4})


def test_s4_10_with_scaling_all_five_run(scaled_lab: Lab, five_large: str) -> None:
    scaled_lab.apply(five_large)
    scaled_lab.settled(APP, {"Running": 5})
    scaled_lab.delete_workloads()


# A context counts too: with up to 1 GiB where the driver's list does not show a container's process by its pid.
USING = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: using}
spec:
  replicas: 10
  selector: {matchLabels: {app: vgpu-test}}
  template:
    metadata: {labels: {app: vgpu-test}}
    spec:
      containers:
      - name: main
        image: ubuntu:18.04
        command: [sh, -c, "nvidia-smi; while gpu-load --memory-mib 8900 --seconds 2; do echo done; done; sleep 86400"]
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 10000}}
"""


def test_s4_6_ten_replicas_of_10000_mib_really_use_them(scaled_lab: Lab) -> None:
    scaled_lab.apply(USING)
    scaled_lab.settled(APP, {"Running": 10})
    names = [pod["metadata"]["name"] for pod in scaled_lab.pods(APP)]
    spilled = 0

    def all_done() -> bool:
        nonlocal spilled
        gpus = simgpu.read(scaled_lab.machine).gpus
        assert all(gpu.used_mib <= gpu.memory_mib for gpu in gpus)
        spilled = max(spilled, *(sum(process.spilled_mib for process in gpu.processes) for gpu in gpus))
        return spilled > 5 * 8900 - 32768 and all("done" in scaled_lab.kubectl("logs", name) for name in names)

    wait_until(all_done, lambda: "\n".join(scaled_lab.kubectl("logs", name) for name in names))
    for name in names:
        log = scaled_lab.kubectl("logs", name)
        assert gpu_smi_line(log) == "0MiB / 10000MiB"
        assert "OOM" not in log
    scaled_lab.delete_workloads()
