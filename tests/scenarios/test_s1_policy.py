"""S1.6: Volcano's `deviceshare.SchedulePolicy` decides the node and the GPU, as its document configures it."""

import json
import re
from collections import Counter

import pytest
import yaml

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.seeds import html_manifests, seed
from tests.waiting import wait_until

PODS = 4


@pytest.fixture(scope="module")
def argument() -> str:
    """The argument's line of the document's scheduler configuration, without its comment."""
    found = re.search(r"^ *(deviceshare\.SchedulePolicy: \w+)", seed("001"), flags=re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def lab(start_lab: StartLab, argument: str) -> Lab:
    """Two nodes with two GPUs each."""
    return start_lab("deviceshare", "--nodes", "2", "--gpu", "A100-SXM4-40GB", config=argument)


def land(lab: Lab) -> tuple[list[int], list[int]]:
    """How many of a few equal pods, which come one after the other, each used node and each used GPU gets."""
    lab.delete_workloads()
    manifest = html_manifests(seed("001"))[0]
    for number in range(PODS):
        lab.apply(manifest.replace("name: hami-pod", f"name: pod-{number}").replace("vgpu-cores: 50", "vgpu-cores: 10"))
        wait_until(lambda: lab.phases() == {"Running": number + 1}, lambda: lab.kubectl("describe", "pods"))  # noqa: B023
    grants = [item["spec"] for item in lab.grants()]
    nodes = Counter(grant["node"] for grant in grants)
    gpus = Counter(share["gpu"] for grant in grants for each in grant["containers"] for share in each["shares"])
    return sorted(nodes.values()), sorted(gpus.values())


def test_s1_6_binpack_fills_one_gpu_and_spread_uses_all(lab: Lab, argument: str) -> None:
    assert yaml.safe_load(argument) == {"deviceshare.SchedulePolicy": "binpack"}
    assert land(lab) == ([PODS], [PODS])
    change = json.dumps({"data": {"lamina.yaml": argument.replace("binpack", "spread")}})
    lab.kubectl("patch", "configmap", "lamina", "-n", "lamina-system", "--type=merge", "-p", change)
    wait_until(lambda: land(lab) == ([2, 2], [1, 1, 1, 1]), lambda: lab.kubectl("get", "grants", "-o", "yaml"), 90)
