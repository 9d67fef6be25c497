"""S1: Volcano's "GPU Virtualization", with the manifests of that document as they stand."""

from collections.abc import Iterator

import pytest

from tests.scenarios import volcano
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.scenarios.rows import TABLE
from tests.scenarios.volcano import sums_of_eight


@pytest.fixture(scope="module")
def a100_lab(start_lab: StartLab) -> Lab:
    return start_lab("volcano", *TABLE["S1"].options)


@pytest.fixture
def lab(a100_lab: Lab) -> Iterator[Lab]:
    yield a100_lab
    a100_lab.delete_workloads()


hami_core = volcano.hami_core
globals().update(TABLE["S1"].tests)


def test_s1_1_allocatable_has_the_sums_of_the_node(start_lab: StartLab) -> None:
    sums_of_eight(start_lab("eight", "--gpus-per-node", "8", "--gpu", "T4"))


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
