"""S1: Volcano's "GPU Virtualization", with the manifests of that document as they stand."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab, wait_for
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
