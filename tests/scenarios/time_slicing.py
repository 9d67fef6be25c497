"""Tests of time-slicing that run on a lab and on the test cluster."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.scenarios.labs import Cluster, Lab
from tests.scenarios.nvidia import GPU, allocatable, config_map, label, offers, use, visible
from tests.seeds import piped, seed
from tests.waiting import wait_until

APP = "app=nvidia-plugin-test"
CONFIG = "NVIDIA-A100-PCIE-40GB"


def slice_gpus(lab: Cluster) -> None:
    """What the document does, in its order; four replicas in place of its ten, as its result has it."""
    before = allocatable(lab)
    assert before == {GPU: 20}, "tickets, ten for each GPU"
    lab.apply(config_map("time-slicing-config").replace("replicas: 10", "replicas: 4"))
    use(lab, {"name": "time-slicing-config"})
    assert allocatable(lab) == before, "the policy has no default, and nothing names a configuration yet"
    label(lab, CONFIG)
    offers(lab, {GPU: 8})


@pytest.fixture(scope="module")
def eleven() -> str:
    """11 replicas of nvidia.com/gpu 1, privileged."""
    return next(text for text in piped(seed("002")) if "replicas: 11" in text)


def test_s2_1_the_node_offers_gpus_times_replicas(lab: Lab) -> None:
    status = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))["status"]
    assert status["capacity"][GPU] == "8"

    def inventory() -> dict[str, Any]:
        spec: dict[str, Any] = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
        return spec

    expected = [{"resource": GPU, "count": 8, "replicas": 4, "sharing": "time-slicing"}]
    wait_until(lambda: inventory().get("nativeResources") == expected, lambda: str(inventory()))
    assert [gpu["nativeResource"] for gpu in inventory()["gpus"]] == [GPU, GPU]


def test_s2_1_the_labels_say_that_gpus_are_shared(lab: Lab) -> None:
    def labels() -> dict[str, str]:
        found = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))["metadata"]["labels"]
        return {name: found.get(f"nvidia.com/gpu.{name}", "") for name in ("product", "replicas", "sharing-strategy")}

    expected = {"product": f"{CONFIG}-SHARED", "replicas": "4", "sharing-strategy": "time-slicing"}
    wait_until(lambda: labels() == expected, lambda: str(labels()))


def test_s2_1_the_documents_pod_sees_its_gpu(lab: Lab) -> None:
    lab.apply(next(text for text in piped(seed("002")) if "name: command-nvidia-smi" in text))
    wait_until(lambda: lab.phases() == {"Succeeded": 1}, lambda: lab.kubectl("describe", "pods"))
    log = lab.kubectl("logs", "command-nvidia-smi")
    assert log.count("NVIDIA A100") == 1
    assert "40960MiB" in log, "time-slicing limits no memory"


def test_s2_2_eight_of_eleven_run(lab: Lab, eleven: str) -> None:
    lab.apply(eleven)
    lab.settled(APP, {"Pending": 3, "Running": 8})
    running = [each["metadata"]["name"] for each in lab.pods(APP) if each["status"]["phase"] == "Running"]
    seen = Counter(visible(lab, name) for name in running)
    assert sorted(seen.values()) == [4, 4], "distributed over both GPUs"
    assert lab.kubectl("get", "grants", "-o", "name") == "", "nothing is granted that kubelet allocates"
    waiting = next(each["metadata"]["name"] for each in lab.pods(APP) if each["status"]["phase"] == "Pending")
    assert "all 8 nvidia.com/gpu are allocated" in lab.lamina("why", waiting).stdout
    assert lab.lamina("pods").stdout.count("1 nvidia.com/gpu") == 8

    def indices() -> list[int]:
        rows = json.loads(lab.lamina("pods", "-o", "json").stdout)
        return sorted(share["index"] for row in rows for share in row["shares"])

    wait_until(lambda: indices() == [0] * 4 + [1] * 4, lambda: lab.lamina("pods", "-o", "json").stdout)
