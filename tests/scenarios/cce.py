"""Tests of Huawei CCE's document that run on a lab and on the test cluster."""

import json
import re

import pytest

from tests.scenarios.labs import Lab
from tests.seeds import indented_manifests, seed
from tests.waiting import wait_until

APP = "app=gpu-app"
MEMORY, CORES = "volcano.sh/gpu-mem.128Mi", "volcano.sh/gpu-core.percentage"


@pytest.fixture(scope="module")
def memory_only() -> str:
    return indented_manifests(seed("000"))[0]


@pytest.fixture(scope="module")
def memory_and_compute() -> str:
    return indented_manifests(seed("000"))[1]


def shares(lab: Lab, selector: str = APP) -> list[dict[str, object]]:
    """The shares of the pods of `selector`."""
    names = {pod["metadata"]["name"] for pod in lab.pods(selector)}
    grants = [item["spec"] for item in json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]]
    return [
        share for grant in grants if grant["pod"] in names for each in grant["containers"] for share in each["shares"]
    ]


def test_s0_1_the_pod_sees_its_memory(lab: Lab, memory_only: str) -> None:
    lab.apply(memory_only)
    pod = lab.running_pod(APP)
    inside = lab.kubectl("exec", pod, "--", "nvidia-smi")
    assert re.search(r"0MiB / +5120MiB", inside), inside
    assert "Tesla V100-SXM2" in inside
    assert [share["memoryMiB"] for share in shares(lab)] == [5120]


def test_s0_1_the_node_offers_all_its_memory(lab: Lab) -> None:
    def offered() -> str:
        return str(lab.read(f"/api/v1/nodes/{lab.node}")["status"]["allocatable"].get(MEMORY))

    wait_until(lambda: offered() == str(2 * (16160 // 128)), offered)


def test_s0_2_memory_and_compute(lab: Lab, memory_and_compute: str) -> None:
    lab.apply(memory_and_compute)
    lab.running_pod(APP)
    [share] = shares(lab)
    assert (share["memoryMiB"], share["cores"], share["computePolicy"]) == (5120, 25, "cap")
