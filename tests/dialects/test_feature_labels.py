"""The labels of GPU feature discovery on nodes with whole GPUs, by model, driver, fabric and sharing."""

import re

import pytest
from msgspec.structs import replace

from lamina.core.gpu_facts import GpuFacts
from lamina.core.gpus import Inventory, NativeResource
from lamina.core.sharing import Strategy
from lamina.dialects.nvidia import feature_labels
from lamina.dialects.nvidia.feature_labels import GpuSharing, gpu_sharing, labels, labels_of_discovery
from tests.dialects.nodes import A100, NODE_PAGE, described, inventory

T4 = GpuFacts("GPU-t", 1, "Tesla T4", 15360, compute=(7, 5), pci_class=(3, 2))
SLICED = NativeResource("nvidia.com/gpu", 20, 10, Strategy.TIME_SLICING)
RENAMED = NativeResource("nvidia.com/gpu.shared", 10, 5, Strategy.MPS)


def label(name: str, *facts: GpuFacts, **more: object) -> str | None:
    return labels(described(*facts, **more)).get(f"nvidia.com/{name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cuda.driver.major", "515"), ("cuda.driver.minor", "86"), ("cuda.driver.rev", "01"),
        ("cuda.driver-version.revision", "01"), ("cuda.driver-version.full", "515.86.01"),
        ("cuda.runtime.major", "11"), ("cuda.runtime-version.minor", "7"), ("cuda.runtime-version.full", "11.7"),
        ("gpu.compute.major", "8"), ("gpu.compute.minor", "0"), ("gpu.count", "2"), ("gpu.family", "ampere"),
        ("gpu.machine", "PowerEdge-R750"), ("gpu.memory", "40960"), ("gpu.mode", "compute"),
        ("gpu.product", "NVIDIA-A100-PCIE-40GB"), ("gpu.replicas", "1"), ("gpu.sharing-strategy", "none"),
        ("mig.capable", "true"), ("mig.strategy", None), ("mps.capable", "false"), ("vgpu.present", "false"),
    ],
)  # fmt: skip
def test_s2_3_labels_of_a_node_with_equal_gpus(name: str, value: str | None) -> None:
    assert label(name, A100, replace(A100, uuid="GPU-b", index=1)) == value


@pytest.mark.parametrize(
    ("compute", "family"),
    [((1, 3), "tesla"), ((2, 1), "fermi"), ((3, 5), "kepler"), ((5, 2), "maxwell"), ((6, 1), "pascal"),
     ((7, 0), "volta"), ((7, 5), "turing"), ((8, 6), "ampere"), ((8, 9), "ada-lovelace"), ((9, 0), "hopper"),
     ((10, 0), "blackwell"), ((12, 0), "blackwell"), ((13, 0), "rubin"), (None, "undefined")],
)  # fmt: skip
def test_families(compute: tuple[int, int] | None, family: str) -> None:
    assert label("gpu.family", replace(A100, compute=compute)) == family


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"pci_class": (3, 0)}, "gpu.mode", "graphics"),
        ({"pci_class": (6, 4)}, "gpu.mode", "unknown"),
        ({"pci_class": None}, "gpu.mode", "unknown"),
        ({"memory_mib": None}, "gpu.memory", "0"),
        ({"mig_capable": False}, "mig.capable", "false"),
        ({"virtual": True}, "vgpu.present", "true"),
    ],
)
def test_facts_of_a_gpu(changes: dict[str, object], name: str, value: str) -> None:
    assert label(name, replace(A100, **changes)) == value


def test_a_driver_with_a_short_version_has_empty_parts() -> None:
    node = described(A100)
    short = labels(replace(node, inventory=replace(node.inventory, driver="550.54")))
    assert short["nvidia.com/cuda.driver.minor"] == "54"
    assert short["nvidia.com/cuda.driver.rev"] == short["nvidia.com/cuda.driver-version.revision"] == ""


def test_a_machine_without_a_name_is_unknown() -> None:
    assert label("gpu.machine", A100, machine="") == label("gpu.machine", A100, machine="(?)") == "unknown"


def test_a_node_without_gpus_has_no_label() -> None:
    assert labels(described()) == {}


def test_s2_3_s3_5_sharing_is_described_and_the_product_has_a_suffix_unless_renamed() -> None:
    assert label("gpu.product", A100, offered=[SLICED]) == "NVIDIA-A100-PCIE-40GB-SHARED"
    assert label("gpu.replicas", A100, offered=[SLICED]) == "10"
    assert label("gpu.sharing-strategy", A100, offered=[SLICED]) == "time-slicing"
    assert label("gpu.product", A100, offered=[RENAMED]) == "NVIDIA-A100-PCIE-40GB"
    assert label("gpu.replicas", A100, offered=[RENAMED]) == "5"
    assert label("mps.capable", A100, offered=[RENAMED]) == "true"
    assert label("mig.strategy", A100, mig_strategy="mixed") == "mixed"


def test_sharing_is_that_of_the_resource_that_the_gpus_have() -> None:
    assert gpu_sharing(inventory([A100, T4], [SLICED])) == GpuSharing("time-slicing", 10)
    assert gpu_sharing(inventory([A100], [RENAMED])) == GpuSharing("mps", 5, renamed=True)
    assert gpu_sharing(inventory([A100], [NativeResource("nvidia.com/gpu", 1)])) == GpuSharing()
    by_grant = replace(
        inventory([A100]), native_resources=(NativeResource("nvidia.com/mig-1g.5gb", 14, 2, Strategy.TIME_SLICING),)
    )
    assert gpu_sharing(by_grant) == gpu_sharing(Inventory(node="n")) == GpuSharing()


def test_of_several_models_the_one_with_the_most_gpus_is_described() -> None:
    second = replace(T4, uuid="GPU-u", index=2)
    assert (label("gpu.product", A100, T4, second), label("gpu.count", A100, T4, second)) == ("Tesla-T4", "2")
    assert (label("gpu.product", A100, T4), label("gpu.count", A100, T4)) == ("NVIDIA-A100-PCIE-40GB", "1")


def test_values_are_what_kubernetes_accepts() -> None:
    odd = replace(A100, name=" (R) Odd/Name! " + "x" * 80 + "-")
    value = label("gpu.product", odd, offered=[SLICED])
    assert value is not None
    assert re.fullmatch(r"R-OddName-x+-SHARED", value)
    assert len(value) <= 63


def test_the_clique_is_written_where_the_gpus_agree_on_one() -> None:
    fabric = "6a1c30c8-2a0e-4cb1-9d2c-0d8ffb0a3ee3.4"
    one, other = replace(A100, fabric=fabric), replace(A100, uuid="GPU-b", index=1, fabric=fabric)
    assert label("gpu.clique", one, other) == label("gpu.clique", one, T4) == fabric
    assert label("gpu.clique", A100) is None
    assert label("gpu.clique", one, replace(other, fabric="b.1")) is None


def test_labels_of_feature_discovery_itself_are_known_from_its_annotation() -> None:
    annotations = {"nfd.node.kubernetes.io/feature-labels": "cpu-model,nvidia.com/gpu.count,"}
    assert labels_of_discovery(annotations) == {"cpu-model", "nvidia.com/gpu.count"}
    assert labels_of_discovery({}) == frozenset()


def test_the_page_lists_every_label() -> None:
    listed = {
        f"nvidia.com/{name}"
        for row in re.findall(r"^\| (`[^|]*) \|", NODE_PAGE, re.M)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert listed >= feature_labels.LABELS
