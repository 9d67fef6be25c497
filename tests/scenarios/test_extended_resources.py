"""Plain pods whose resources DeviceClasses serve: the scheduler makes a claim for them, and the agent prepares it."""

import re
from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, running, smi
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import GIB, OUT_OF_MEMORY, allocate, devices, listed, names, seen, without_claims
from tests.waiting import wait_until

CONFIG = EXAMPLES / "configuration" / "v1alpha1" / "gpu-by-claim.yaml"
MACHINES = EXAMPLES / "lab-dra-mig.yaml"


@pytest.fixture(scope="module")
def extended_lab(start_lab: StartLab) -> Lab:
    lab = start_lab("ext", "--machines", str(MACHINES), "--config", str(CONFIG))
    wait_until(lambda: len(devices(lab)) == 2, lambda: lab.kubectl("get", "resourceslices", "-o", "yaml"))
    return lab


@pytest.fixture
def lab(extended_lab: Lab) -> Iterator[Lab]:
    yield extended_lab
    extended_lab.delete_workloads()
    without_claims(extended_lab)


def scheduled(lab: Lab, pod: str) -> str:
    """What the scheduler says about the pod."""
    conditions = lab.read(f"/api/v1/namespaces/default/pods/{pod}")["status"].get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def test_a_plain_pod_gets_a_whole_gpu_by_a_claim(lab: Lab) -> None:
    apply(lab, "dra/gpu-by-count")
    running(lab, "gpu-by-count")
    (claim,) = names(lab)
    assert claim.startswith("gpu-by-count-extended-resources-")
    assert re.search(r" 0MiB / (32768|40960)MiB", smi(lab, "gpu-by-count"))
    row = lab.lamina("pods").stdout.splitlines()[1].split()
    assert row[:2] == ["gpu-by-count", "Running"] and row[-1] == "whole"


def test_a_pod_without_a_free_gpu_waits_for_the_end_of_another(lab: Lab) -> None:
    manifest = (EXAMPLES / "dra" / "gpu-by-count.yaml").read_text()
    pods = [f"counted-{number}" for number in range(3)]
    for pod in pods[:2]:
        lab.apply(manifest.replace("name: gpu-by-count", f"name: {pod}"))
        running(lab, pod)
    lab.apply(manifest.replace("name: gpu-by-count", f"name: {pods[2]}"))
    wait_until(lambda: "2 cannot allocate all claims" in scheduled(lab, pods[2]), lambda: scheduled(lab, pods[2]))
    lab.kubectl("delete", "pod", pods[0], "--grace-period=1")
    running(lab, pods[2])
    assert seen(lab, pods[1]) != seen(lab, pods[2])


def partitioned(lab: Lab) -> None:
    assert lab.lamina("mig", "apply", "node-1", "all-1g.5gb").returncode == 0
    wait_until(lambda: len([name for name in devices(lab) if "mig-1g5gb" in name]) == 7, lambda: str(devices(lab)))


def test_a_class_serves_mig_devices_by_their_profile(lab: Lab) -> None:
    partitioned(lab)
    apply(lab, "dra/mig-by-profile")
    running(lab, "mig-by-profile")
    assert listed(lab, "mig-by-profile").count("MIG 1g.5gb") == 2


def test_containers_share_a_mig_device_by_mps(lab: Lab) -> None:
    partitioned(lab)
    apply(lab, "dra/mig-mps")
    running(lab, "mig-mps-claim")
    for container in ("one", "two"):
        assert allocate(lab, "mig-mps-claim", GIB, GIB, container=container) == ["0", OUT_OF_MEMORY], (
            "a context takes the rest"
        )
        assert "MIG 1g.5gb" in listed(lab, "mig-mps-claim", container)
