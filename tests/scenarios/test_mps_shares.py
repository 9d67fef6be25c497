"""Shares in the mode mps: unequal parts that run at the same time, in every dialect that has a word for it."""

import json
from collections.abc import Iterator

import pytest

from lamina_lab import simgpu
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, grant_of, running, smi
from tests.scenarios.labs import Lab
from tests.scenarios.nvidia import node_events
from tests.waiting import wait_until

CONFIG = (EXAMPLES / "configuration" / "v1alpha1" / "mps.yaml").read_text()
LOAD = "gpu-load --seconds 2"


@pytest.fixture(scope="module")
def one_gpu(start_lab: StartLab) -> Lab:
    return start_lab("mps-shares", "--gpus-per-node", "1", "--gpu", "A100-PCIE-40GB", config=CONFIG)


@pytest.fixture
def lab(one_gpu: Lab) -> Iterator[Lab]:
    yield one_gpu
    one_gpu.delete_workloads()
    wait_until(lambda: daemons(one_gpu) == [], lambda: f"daemons stay: {daemons(one_gpu)}")


def daemons(lab: Lab) -> list[str]:
    """The states of the daemons on the node."""
    spec = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
    return [each["state"] for each in spec.get("mps", [])]


def clients(lab: Lab) -> list[simgpu.ProcessState]:
    gpus = simgpu.read(lab.machine).gpus
    return sorted(
        (each for gpu in gpus for each in gpu.processes if each.mps_percent), key=lambda each: each.mps_percent
    )


def parts(lab: Lab) -> dict[int, float]:
    """By its percentage, for which part of half a second each client worked. None has more than its own; on a busy
    machine one that launches too late has less."""
    before, now = simgpu.read(lab.machine), simgpu.read(lab.machine)
    while now.now_ns - before.now_ns < 500_000_000:
        now = simgpu.read(lab.machine)
    then = {each.pid: each.busy_ns for gpu in before.gpus for each in gpu.processes}
    found = {
        each.mps_percent: (each.busy_ns - then[each.pid]) / (now.now_ns - before.now_ns)
        for gpu in now.gpus
        for each in gpu.processes
        if each.mps_percent
    }
    assert all(part <= percent / 100 + 0.02 for percent, part in found.items()), found
    return found


def pod(name: str, command: str, mode: str = "mps", memory: int = 4000, cores: int = 0) -> str:
    amounts = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory} | ({"nvidia.com/gpucores": cores} if cores else {})
    main = {"name": "main", "image": "ubuntu:24.04", "command": ["sh", "-c", command], "resources": {"limits": amounts}}
    metadata = {"name": name, "annotations": {"nvidia.com/vgpu-mode": mode}}
    spec = {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [main]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def inside(lab: Lab, name: str, command: str) -> str:
    return lab.kubectl("exec", name, "--", "sh", "-c", command, check=False)


def test_each_client_has_its_part_of_the_processors_and_all_run_at_once(lab: Lab) -> None:
    for name, cores in (("ten", 10), ("thirty", 30), ("fifty", 50)):
        lab.apply(pod(name, "exec gpu-load --seconds 1000 --memory-mib 100", cores=cores))
    for name in ("ten", "thirty", "fifty"):
        running(lab, name)
    wait_until(lambda: len(clients(lab)) == 3 and all(each.busy_ns for each in clients(lab)), lambda: str(clients(lab)))
    wait_until(lambda: parts(lab) == pytest.approx({10: 0.1, 30: 0.3, 50: 0.5}, abs=0.02), lambda: str(parts(lab)))
    assert daemons(lab) == ["ready"]


def test_memory_is_held_for_the_container_and_for_each_process(lab: Lab) -> None:
    lab.apply(pod("limited", "sleep infinity", memory=4000, cores=30))
    running(lab, "limited")
    assert "0MiB /  4000MiB" in smi(lab, "limited")
    assert "out of memory" in inside(lab, "limited", f"{LOAD} --memory-mib 4000")
    both = f"{LOAD} --memory-mib 2500 & {LOAD} --memory-mib 2500; wait"
    assert "out of memory" in inside(lab, "limited", both), "two processes have one limit together"
    bypass = f"env -u LD_PRELOAD {LOAD} --memory-mib 4000"
    assert "out of memory" in inside(lab, "limited", bypass), "MPS itself holds a process without the facade"


@pytest.mark.parametrize(
    "change", ["", "env -u CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100"]
)
def test_a_program_cannot_take_a_larger_part(lab: Lab, change: str) -> None:
    lab.apply(pod("steady", f"exec {change} gpu-load --seconds 1000 --memory-mib 100", cores=30))
    running(lab, "steady")
    wait_until(lambda: len(clients(lab)) == 1, lambda: str(clients(lab)))
    assert [each.mps_percent for each in clients(lab)] == [30]


def test_a_program_can_take_a_smaller_part(lab: Lab) -> None:
    command = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=12.5 exec gpu-load --seconds 1000 --memory-mib 100"
    lab.apply(pod("modest", command, cores=30))
    running(lab, "modest")
    wait_until(lambda: [each.mps_percent for each in clients(lab)] == [12], lambda: str(clients(lab)))


def test_a_gpu_in_use_keeps_its_mode_and_an_idle_one_changes_it(lab: Lab) -> None:
    lab.apply(pod("first", "sleep infinity"))
    running(lab, "first")
    lab.apply(pod("second", "sleep infinity", mode="hami-core"))
    reason = "pods keep the GPU in the mode mps; another mode is possible when it is idle"
    wait_until(lambda: reason in lab.lamina("why", "second").stdout, lambda: lab.lamina("why", "second").stdout)
    lab.kubectl("delete", "pod", "first", "--grace-period=1")
    running(lab, "second")
    assert (daemons(lab), inside(lab, "second", "echo $CUDA_MPS_PIPE_DIRECTORY").strip()) == ([], "")
    lab.kubectl("delete", "pod", "second", "--grace-period=1")
    lab.apply(pod("third", "sleep infinity"))
    running(lab, "third")
    assert daemons(lab) == ["ready"]
    assert node_events(lab, "MpsReady")


def test_the_other_dialects(lab: Lab) -> None:
    for example, name in (("mps-shares-volcano", "mps-volcano"), ("kai-sm-sharing", "kai-sm-sharing")):
        apply(lab, example)
        running(lab, name)
    containers = [grant_of(lab, name)["containers"] for name in ("mps-volcano", "kai-sm-sharing")]
    shares = [share for each in containers for one in each for share in one["shares"]]  # type: ignore[attr-defined]
    assert [(each["mode"], each["memoryMiB"], each["cores"], each["computePolicy"]) for each in shares] == [
        ("mps", 3000, 25, "threads"),
        ("mps", 20480, 50, "threads"),
    ]
    listed = [share for row in json.loads(lab.lamina("pods", "-o", "json").stdout) for share in row["shares"]]
    assert sorted((each["mode"], each["memoryMib"]) for each in listed) == [("mps", 3000), ("mps", 20480)]
