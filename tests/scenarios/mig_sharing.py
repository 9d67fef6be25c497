"""Tests of MIG devices as GPUs that run on a lab and on the test cluster."""

import json

from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Cluster, Lab
from tests.scenarios.nvidia import (
    GPU,
    NAMESPACE,
    label,
    node_events,
    offers,
)
from tests.waiting import wait_until

CONFIG = "NVIDIA-A100-PCIE-40GB"
HALF = "nvidia.com/mig-3g.20gb"


def strategy(lab: Cluster, name: str) -> None:
    """Replace the policy's strategy as the document does."""
    patch = json.dumps([{"op": "replace", "path": "/spec/mig/strategy", "value": name}])
    lab.kubectl("patch", "clusterpolicy/gpu-cluster-policy", "-n", NAMESPACE, "--type=json", "-p", patch)


def partition(lab: Cluster, name: str) -> None:
    lab.kubectl("label", "nodes", lab.node, f"nvidia.com/mig.config={name}", "--overwrite")


def labels(lab: Cluster) -> dict[str, str]:
    found = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))["metadata"]["labels"]
    return {name: text for name, text in found.items() if name.startswith("nvidia.com/")}


def labelled(lab: Cluster, expected: dict[str, str]) -> None:
    wait_until(lambda: expected.items() <= labels(lab).items(), lambda: f"{labels(lab)}, expected {expected}")


def test_s2_5_single_of_the_policy_holds_without_a_configuration_of_the_plugin(lab: Lab) -> None:
    strategy(lab, "single")
    offers(lab, {GPU: 20})
    partition(lab, "all-1g.5gb")
    offers(lab, {GPU: 14})
    labelled(lab, {
        "nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": f"{CONFIG}-MIG-1g.5gb",
        "nvidia.com/gpu.count": "14", "nvidia.com/gpu.memory": "4864", "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.slices.gi": "1", "nvidia.com/gpu.multiprocessors": "14",
    })  # fmt: skip
    lab.apply((EXAMPLES / "mig-single.yaml").read_text())
    wait_until(lambda: lab.phases() == {"Succeeded": 1}, lambda: lab.kubectl("describe", "pods"))
    log = [" ".join(line.split()) for line in lab.kubectl("logs", "mig-single").splitlines()]
    assert log[0].startswith("GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-")
    assert log[1].startswith("MIG 1g.5gb Device 0: (UUID: MIG-")
    assert lab.kubectl("get", "grants", "-o", "name") == ""


def test_s2_5_unequally_partitioned_gpus_are_invalid_in_single(lab: Lab) -> None:
    partition(lab, "all-balanced")
    offers(lab, {})
    labelled(lab, {"nvidia.com/gpu.product": f"{CONFIG}-MIG-INVALID", "nvidia.com/gpu.count": "0"})
    wait_until(
        lambda: any("more than one MIG device type present" in text for text in node_events(lab, "MigNotOffered")),
        lambda: str(node_events(lab, "MigNotOffered")),
    )


def test_s2_3_without_mig_the_labels_are_those_of_gpus_again(lab: Lab) -> None:
    strategy(lab, "none")
    partition(lab, "all-disabled")
    label(lab, "")
    offers(lab, {GPU: 20})
    labelled(lab, {"nvidia.com/gpu.product": CONFIG, "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "40960"})
    assert "nvidia.com/mig.strategy" not in labels(lab)
    assert not any("slices" in name or "engines" in name for name in labels(lab))
