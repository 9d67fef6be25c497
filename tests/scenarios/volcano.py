"""Tests of Volcano's document that run on a lab and on the test cluster."""

import json
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina_lab import simgpu
from tests.scenarios.labs import Cluster, Lab
from tests.seeds import html_manifests, seed
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def hami_core() -> str:
    """A pod of one vGPU with 3000 MiB and 50 % in mode hami-core."""
    return html_manifests(seed("001"))[0]


def test_s1_2_a_pod_gets_its_memory_and_compute(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)

    def runs() -> bool:
        return lab.phases() == {"Running": 1}

    wait_until(runs, lambda: lab.kubectl("describe", "pods"))
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

    wait_until(lambda: "volcano.sh/vgpu-ids-new" in annotations(), lambda: str(annotations()))
    [grant] = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    gpu = grant["spec"]["containers"][0]["shares"][0]["gpu"]
    assert annotations()["volcano.sh/vgpu-ids-new"] == f"{gpu},NVIDIA,3000,50:"
    assert annotations()["volcano.sh/devices-to-allocate"] == f"{gpu},NVIDIA,3000,50:"
    assert annotations()["volcano.sh/vgpu-node"] == grant["spec"]["node"]
    assert annotations()["volcano.sh/bind-phase"] == "success"
    assert not any(key.startswith("hami.io/") for key in annotations())


def test_s1_8_metrics_have_use_and_limits(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)
    lab.running_pod("")
    of_controller = series(lab.metrics("controller"))
    granted = {name: value for name, labels, value in of_controller if labels.get("podName") == "hami-pod"}
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
    utilization = {labels["UUID"]: value for name, labels, value in agent if name == "DCGM_FI_DEV_GPU_UTIL"}
    assert utilization.keys() == {gpu.uuid for gpu in simgpu.read(lab.machine).gpus}
    assert max(utilization.values()) > 0


def series(page: str) -> list[tuple[str, dict[str, str], float]]:
    """Each series of a page of metrics."""
    return [(s.name, s.labels, s.value) for family in text_string_to_metric_families(page) for s in family.samples]


def sums_of_eight(lab: Cluster) -> None:
    """What a node of eight T4 tells of itself."""

    def node() -> dict[str, Any]:
        return lab.read(f"/api/v1/nodes/{lab.node}")

    wanted = {"vgpu-number": "80", "vgpu-memory": str(8 * 15360), "vgpu-cores": "800"}

    def there() -> bool:
        allocatable = node()["status"]["allocatable"]
        return all(allocatable.get(f"volcano.sh/{name}") == amount for name, amount in wanted.items())

    wait_until(there, lambda: str(node()["status"]))
    lab.kubectl("label", "node", lab.node, "nvidia.com/gpu.product-")
    assert node()["metadata"]["annotations"]["volcano.sh/node-vgpu-register"].count("Tesla T4,true,hami-core:") == 8
    wait_until(lambda: node()["metadata"]["labels"].get("nvidia.com/gpu.product") == "Tesla-T4", lambda: str(node()))
    assert node()["metadata"]["labels"]["nvidia.com/gpu.family"] == "turing"
