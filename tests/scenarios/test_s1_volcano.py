"""S1: Volcano's "GPU Virtualization", with the manifests of that document as they stand."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina import simgpu
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Cluster, Lab, wait_for
from tests.seeds import html_manifests, seed


@pytest.fixture(scope="module")
def a100_lab(start_lab: StartLab) -> Lab:
    return start_lab("volcano", "--gpu", "A100-SXM4-40GB")


@pytest.fixture
def lab(a100_lab: Lab) -> Iterator[Lab]:
    yield a100_lab
    a100_lab.delete_workloads()


@pytest.fixture(scope="module")
def hami_core() -> str:
    """A pod of one vGPU with 3000 MiB and 50 % in mode hami-core."""
    return html_manifests(seed("001"))[0]


def test_s1_2_a_pod_gets_its_memory_and_compute(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)

    def runs() -> bool:
        return lab.phases() == {"Running": 1}

    wait_for(runs, lambda: lab.kubectl("describe", "pods"))
    [grant] = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    [share] = grant["spec"]["containers"][0]["shares"]
    assert grant["spec"]["dialect"] == "volcano"
    assert (share["memoryMiB"], share["cores"]) == (3000, 50)
    assert re.search(r"0MiB / +3000MiB", lab.kubectl("exec", "hami-pod", "--", "nvidia-smi"))


def test_s1_2_the_pod_carries_what_volcanos_tools_read(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)

    def annotations() -> dict[str, str]:
        found: dict[str, str] = lab.pods()[0]["metadata"].get("annotations", {})
        return found

    wait_for(lambda: "volcano.sh/vgpu-ids-new" in annotations(), lambda: str(annotations()))
    [grant] = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    gpu = grant["spec"]["containers"][0]["shares"][0]["gpu"]
    assert annotations()["volcano.sh/vgpu-ids-new"] == f"{gpu},NVIDIA,3000,50:"
    assert annotations()["volcano.sh/devices-to-allocate"] == f"{gpu},NVIDIA,3000,50:"
    assert annotations()["volcano.sh/vgpu-node"] == grant["spec"]["node"]
    assert annotations()["volcano.sh/bind-phase"] == "success"
    assert not any(key.startswith("hami.io/") for key in annotations())


def test_s1_8_metrics_tell_use_and_limits(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)
    lab.running_pod("")
    control = series(lab.metrics("control"))
    granted = {name: value for name, labels, value in control if labels.get("podName") == "hami-pod"}
    assert granted == {
        "volcano_vgpu_device_memory_allocation_for_a_certain_pod": 3000,
        "volcano_vgpu_device_core_allocation_for_a_certain_pod": 50,
    }
    lab.kubectl("exec", "hami-pod", "--", "gpu-load", "--memory-mib", "1000", "--seconds", "1")
    [pod] = lab.pods()
    agent = series(lab.metrics(pod["spec"]["nodeName"]))
    of_pod = {name: value for name, labels, value in agent if labels.get("pod") == "hami-pod"}
    assert of_pod["hami_vgpu_memory_limit_bytes"] == of_pod["lamina_container_memory_limit_bytes"] == 3000 << 20
    assert of_pod["lamina_container_cores_percent"] == 50
    assert of_pod["lamina_container_memory_peak_bytes"] >= 1000 << 20
    assert of_pod["lamina_container_busy_seconds_total"] > 0.3
    utilisation = {labels["UUID"]: value for name, labels, value in agent if name == "DCGM_FI_DEV_GPU_UTIL"}
    assert utilisation.keys() == {gpu.uuid for gpu in simgpu.read(lab.machine).gpus}
    assert max(utilisation.values()) > 0


def series(page: str) -> list[tuple[str, dict[str, str], float]]:
    """Each series of a page of metrics."""
    return [(s.name, s.labels, s.value) for family in text_string_to_metric_families(page) for s in family.samples]


def test_s1_1_allocatable_has_the_sums_of_the_node(start_lab: StartLab) -> None:
    sums_of_eight(start_lab("eight", "--gpus-per-node", "8", "--gpu", "T4"))


def sums_of_eight(lab: Cluster) -> None:
    """What a node of eight T4 tells of itself."""

    def node() -> dict[str, Any]:
        return lab.read(f"/api/v1/nodes/{lab.node}")

    wanted = {"vgpu-number": "80", "vgpu-memory": str(8 * 15360), "vgpu-cores": "800"}

    def there() -> bool:
        allocatable = node()["status"]["allocatable"]
        return all(allocatable.get(f"volcano.sh/{name}") == amount for name, amount in wanted.items())

    wait_for(there, lambda: str(node()["status"]))
    lab.kubectl("label", "node", lab.node, "nvidia.com/gpu.product-")
    assert node()["metadata"]["annotations"]["volcano.sh/node-vgpu-register"].count("Tesla T4,true,hami-core:") == 8
    wait_for(lambda: node()["metadata"]["labels"].get("nvidia.com/gpu.product") == "Tesla-T4", lambda: str(node()))
    assert node()["metadata"]["labels"]["nvidia.com/gpu.family"] == "turing"


def test_s1_9_doctor_checks_what_is_needed(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)
    lab.running_pod("")
    healthy = lab.lamina("doctor", "--kubeconfig", str(lab.kubeconfig))
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert {"webhook", "node-0:", "scheduler"} <= set(healthy.stdout.split())
    lab.kubectl("label", "node", lab.node, "nvidia.com/gpu.present=true")
    lab.kubectl("run", "nvidia-device-plugin-1", "--image", "plugin", "--command", "--", "sleep", "1000")
    sick = lab.lamina("doctor", "--kubeconfig", str(lab.kubeconfig))
    assert sick.returncode == 1
    assert "other device plugins: keep them off the nodes that Lamina serves" in sick.stdout
    assert f"kubectl label node {lab.node} nvidia.com/gpu.deploy.device-plugin=false" in sick.stdout
