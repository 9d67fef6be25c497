"""Tests of the post's MIG labels that run on a lab and on the test cluster."""

import json
import re

import pytest

from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Cluster, Lab
from tests.seeds import seed
from tests.waiting import wait_until

HALF = "nvidia.com/mig-3g.20gb"


def node(lab: Cluster) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))
    return found


def partition(lab: Cluster, name: str, devices: dict[str, int]) -> None:
    """Label the node as the post does, and wait until its devices are these."""
    lab.kubectl("label", "nodes", lab.node, f"nvidia.com/mig.config={name}", "--overwrite")

    def is_partitioned() -> bool:
        labels, amounts = node(lab)["metadata"]["labels"], node(lab)["status"]["allocatable"]
        there = {key.removeprefix("nvidia.com/mig-"): int(n) for key, n in amounts.items() if "/mig-" in key}
        return (
            labels.get("nvidia.com/mig.config.state") == "success" and {k: n for k, n in there.items() if n} == devices
        )

    wait_until(is_partitioned, lambda: lab.kubectl("describe", "node", lab.node))


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("all-1g.5gb", {"1g.5gb": 14}),
        ("all-4g.20gb", {"4g.20gb": 2}),
        ("all-balanced", {"1g.5gb": 4, "2g.10gb": 2, "3g.20gb": 2}),
        ("all-disabled", {}),
    ],
)
def test_s2_4_labels_of_the_post_make_its_instances(lab: Lab, name: str, devices: dict[str, int]) -> None:
    partition(lab, name, devices)
    (row,) = [line.split()[:3] for line in lab.lamina("mig", "list").stdout.splitlines() if line.startswith(lab.node)]
    assert row == [lab.node, name, "success"]


def test_s2_5_and_s2_6_a_pod_sees_its_gpu_and_its_one_device(lab: Lab) -> None:
    assert lab.lamina("mig", "apply", lab.node, "all-3g.20gb").returncode == 0
    partition(lab, "all-3g.20gb", {"3g.20gb": 4})
    wait_until(
        lambda: node(lab)["status"]["allocatable"].get("nvidia.com/gpu") == "0", lambda: str(node(lab)["status"])
    )
    applied = re.findall(r"^cat << EOF [^\n]*\n(.*?)^EOF$", seed("002"), re.MULTILINE | re.DOTALL)
    [pod] = [text for text in applied if f"{HALF}: 1" in text]
    lab.kubectl("create", "namespace", "model-serving-test")
    lab.apply(pod)

    def logs() -> list[str]:
        return lab.kubectl("logs", "test-1", "-n", "model-serving-test", check=False).splitlines()

    wait_until(lambda: len(logs()) == 2, lambda: lab.kubectl("describe", "pods", "-A"))
    assert logs()[0].startswith("GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-")
    assert " ".join(logs()[1].split()).startswith("MIG 3g.20gb Device 0: (UUID: MIG-")
    lab.kubectl("delete", "namespace", "model-serving-test", "--wait=false")


def test_s2_4_instances_are_listed_and_a_device_in_use_is_not_taken_away(lab: Lab) -> None:
    partition(lab, "all-3g.20gb", {"3g.20gb": 4})
    example = (EXAMPLES / "mig.yaml").read_text()
    lab.apply(example.replace("[nvidia-smi, -L]", "[sleep, '1000']"))
    lab.kubectl("wait", "--for=condition=Ready", "pod/mig", "--timeout=120s")
    listed = lab.kubectl("exec", "mig", "--", "nvidia-smi", "mig", "-lgi")
    assert "|   0  MIG 3g.20gb          9        1          4:4     |" in listed
    assert "|   0  MIG 3g.20gb          9        2          0:4     |" in listed
    lab.kubectl("label", "nodes", lab.node, "nvidia.com/mig.config=all-1g.5gb", "--overwrite")

    def failed() -> bool:
        return node(lab)["metadata"]["labels"].get("nvidia.com/mig.config.state") == "failed"

    wait_until(failed, lambda: lab.kubectl("describe", "node", lab.node))
    # The pod of the test before may still be ending.
    assert re.search(r"cannot remove 3g.20gb while in use by .*pod default/mig", lab.kubectl("get", "events", "-A"))
    lab.kubectl("delete", "pod", "mig", "--grace-period=1")
    partition(lab, "all-1g.5gb", {"1g.5gb": 14})
