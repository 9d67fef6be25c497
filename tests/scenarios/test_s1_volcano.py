"""S1: Volcano's "GPU Virtualization", with the manifests of that document as they stand."""

import json

import pytest
import yaml

from tests.scenarios import volcano
from tests.scenarios.conftest import StartLab
from tests.scenarios.gpu_time import busy_ns, percents
from tests.scenarios.labs import Lab
from tests.scenarios.rows import TABLE
from tests.scenarios.volcano import sums_of_eight
from tests.waiting import wait_until

ROWS = TABLE["S1"]


hami_core = volcano.hami_core
globals().update(ROWS.tests)


def test_s1_1_allocatable_has_the_sums_of_the_node(start_lab: StartLab) -> None:
    sums_of_eight(start_lab("eight", "--gpus-per-node", "8", "--gpu", "T4"))


@pytest.mark.parametrize(
    ("policy", "least", "most", "shown"), [("", 80, 101, "50 %, lends"), ("force", 46, 54, "50 %, cap")]
)
def test_s1_2_what_a_vgpu_uses_of_the_cores_is_what_is_shown(
    lab: Lab, hami_core: str, policy: str, least: float, most: float, shown: str
) -> None:
    """The document says that each vGPU uses 50 %. It has them for sure, and they are a cap where that is asked for."""
    manifest = yaml.safe_load(hami_core)
    container = manifest["spec"]["containers"][0]
    container["command"] = ["gpu-load", "--kernel-ms", "10", "--seconds", "600"]
    container["env"] = [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": policy}] if policy else []
    lab.apply(json.dumps(manifest))
    lab.running_pod("")
    wait_until(lambda: len(busy_ns(lab)) == 1, lambda: lab.kubectl("describe", "pods"))
    seen: list[float] = []

    def as_shown() -> bool:
        seen.extend(percents(lab))
        return least < seen[-1] < most

    wait_until(as_shown, lambda: str(seen), 60)
    for command in (("pods",), ("why", "hami-pod"), ("top", "--once")):
        assert shown in lab.lamina(*command, "--kubeconfig", str(lab.kubeconfig)).stdout, command
    assert f"50 of 100 %, {shown.partition(', ')[2]}" in lab.lamina("gpus", "--kubeconfig", str(lab.kubeconfig)).stdout


def test_s1_9_doctor_checks_what_is_needed(lab: Lab, hami_core: str) -> None:
    lab.apply(hami_core)
    lab.running_pod("")
    healthy = lab.lamina("doctor", "--all", "--kubeconfig", str(lab.kubeconfig))
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert {"webhook", "node-0:", "scheduler"} <= set(healthy.stdout.split())
    lab.kubectl("label", "node", lab.node, "nvidia.com/gpu.present=true")
    lab.kubectl("run", "nvidia-device-plugin-1", "--image", "plugin", "--command", "--", "sleep", "1000")
    sick = lab.lamina("doctor", "--all", "--kubeconfig", str(lab.kubeconfig))
    assert sick.returncode == 1
    assert "other device plugins: keep them off the nodes that Lamina serves" in sick.stdout
    assert f"kubectl label node {lab.node} nvidia.com/gpu.deploy.device-plugin=false" in sick.stdout
