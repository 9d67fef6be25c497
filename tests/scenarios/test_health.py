"""GPUs that fail in a lab: what becomes of the node, of pods that run, and of pods that wait."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab, Object
from tests.waiting import wait_until

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - name: main
    image: cuda
    command: [sleep, "86400"]
    resources: {{limits: {{nvidia.com/gpu: {gpus}, nvidia.com/gpumem: 1000}}}}
"""


@pytest.fixture(scope="module")
def faulty_lab(start_lab: StartLab) -> Lab:
    return start_lab("faults", config="health: {recoverySeconds: 10}")


@pytest.fixture
def lab(faulty_lab: Lab) -> Iterator[Lab]:
    yield faulty_lab
    faulty_lab.delete_workloads()


def reasons(lab: Lab) -> list[str]:
    [inventory] = json.loads(lab.kubectl("get", "inventories", "-o", "json"))["items"]
    return [gpu.get("reason", "") for gpu in inventory["spec"]["gpus"]]


def become(lab: Lab, *wanted: str) -> None:
    wait_until(lambda: reasons(lab) == list(wanted), lambda: f"reasons are {reasons(lab)}")


def fault(lab: Lab, *arguments: str) -> None:
    result = lab.lamina("lab", "fault", *arguments, "--name", lab.name)
    assert result.returncode == 0, result.stderr


def messages(lab: Lab, reason: str) -> list[str]:
    events: list[Object] = json.loads(lab.kubectl("get", "events", "-o", "json"))["items"]
    return [e["message"] for e in events if e["reason"] == reason and e["involvedObject"]["kind"] == "Node"]


def runs(lab: Lab, name: str) -> Callable[[], bool]:
    return lambda: {p["metadata"]["name"]: p["status"]["phase"] for p in lab.pods()}.get(name) == "Running"


def test_a_critical_error_takes_a_gpu_out_until_it_has_been_quiet(lab: Lab) -> None:
    lab.apply(POD.format(name="before", gpus=2))
    wait_until(runs(lab, "before"), lambda: lab.kubectl("describe", "pods"))
    fault(lab, "xid", "79", "--gpu", "1")
    become(lab, "", "the driver reported XID 79")
    lab.apply(POD.format(name="after", gpus=2))
    lab.settled("", {"Pending": 1, "Running": 1})
    [waiting] = [pod for pod in lab.pods() if pod["status"]["phase"] == "Pending"]
    [condition] = [each for each in waiting["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert "XID 79" in condition["message"]
    assert any("XID 79" in message for message in messages(lab, "GpuUnhealthy"))
    assert "GpuUnhealthy" in lab.kubectl("describe", "node", "node-0")
    become(lab, "", "")
    wait_until(runs(lab, "after"), lambda: lab.kubectl("describe", "pods"))
    assert runs(lab, "before")()
    assert any("healthy again" in message for message in messages(lab, "GpuHealthy"))


def test_an_error_of_a_program_changes_nothing(lab: Lab) -> None:
    before = messages(lab, "GpuUnhealthy")
    fault(lab, "xid", "31", "--gpu", "0")
    fault(lab, "xid", "74", "--gpu", "1")
    become(lab, "", "the driver reported XID 74")
    assert [message for message in messages(lab, "GpuUnhealthy") if message not in before and "XID 31" in message] == []
    become(lab, "", "")


def test_a_lost_gpu_is_reported_and_recovers(lab: Lab) -> None:
    fault(lab, "lose", "--gpu", "0")
    become(lab, "the GPU does not answer NVML", "")
    allocatable = json.loads(lab.kubectl("get", "node", "node-0", "-o", "json"))["status"]["allocatable"]
    assert allocatable["volcano.sh/vgpu-cores"] == "200"
    fault(lab, "restore", "--gpu", "0")
    become(lab, "", "")
    fault(lab, "xid", "79", "--gpu", "0")
    become(lab, "the driver reported XID 79", "")
    become(lab, "", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("xid", "79", "--node", "node-7"), "has no node node-7"),
        (("lose", "--gpu", "5"), "has no GPU 5"),
        (("lose", "--name", "nowhere"), "lab nowhere is not running"),
    ],
)
def test_faults_of_what_is_not_there_are_refused(lab: Lab, arguments: tuple[str, ...], sentence: str) -> None:
    result = lab.lamina("lab", "fault", *arguments, *(() if "--name" in arguments else ("--name", lab.name)))
    assert result.returncode != 0
    assert sentence in result.stderr
