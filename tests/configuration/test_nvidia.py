"""NVIDIA's configuration of version v1: every key, its rules with NVIDIA's messages, and the choice among several."""

from typing import Any

import pytest
import yaml

from lamina.configuration import load as load_ours
from lamina.configuration.nvidia import FALLBACKS, NvidiaConfig, choose, load
from lamina.core.sharing import Replicated, Strategy
from lamina.errors import BadInput
from tests.seeds import piped, seed

WHOLE = """
version: v1
flags:
  migStrategy: "none"
  failOnInitError: true
  mpsRoot: /run/mps
  nvidiaDriverRoot: "/"
  nvidiaDevRoot: "/"
  gdrcopyEnabled: true
  gdsEnabled: true
  mofedEnabled: true
  useNodeFeatureAPI: false
  deviceDiscoveryStrategy: auto
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [envvar, cdi-cri]
    deviceIDStrategy: index
    cdiAnnotationPrefix: cdi.k8s.io/
    nvidiaCTKPath: /usr/bin/nvidia-ctk
    containerDriverRoot: /driver-root
    sharedDevicesAllocationPolicy: packed
  gfd:
    oneshot: false
    noTimestamp: true
    sleepInterval: 1m30s
    outputFile: /etc/features
    machineTypeFile: /sys/class/dmi/id/product_name
resources:
  gpus: [{pattern: "*", name: gpu}]
  mig: [{pattern: "*", name: nvidia.com/gpu}]
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources: [{name: gpu, devices: all, replicas: 5}, {name: nvidia.com/mig-1g.5gb, replicas: 2}]
imex: {channelIDs: [0], required: true}
"""


def sharing(text: str, **options: str) -> NvidiaConfig:
    return load(f"version: v1\nsharing: {text}", "c", **options)


def test_s3_1_every_key_is_read() -> None:
    read = load(WHOLE, "c")
    assert read.mps_root == "/run/mps"
    assert (read.allocation, read.by_index, read.pass_device_specs) == ("packed", True, True)
    assert read.list_strategies == ("envvar", "cdi-cri")
    assert [name for name, _ in read.environment] == ["NVIDIA_GDRCOPY", "NVIDIA_GDS", "NVIDIA_MOFED"]
    assert (read.label_timestamps, read.machine_type_file) == (False, "/sys/class/dmi/id/product_name")
    assert read.imex_channels == (0,)
    assert read.sharing.one_at_most
    assert read.sharing.resources == (
        Replicated(name="nvidia.com/gpu", offered="nvidia.com/gpu.shared", replicas=5),
        Replicated(name="nvidia.com/mig-1g.5gb", offered="nvidia.com/mig-1g.5gb.shared", replicas=2),
    )


def test_an_empty_file_is_nvidias_defaults() -> None:
    assert load("", "c") == load("version: v1", "c") == load("flags: {plugin: {passDeviceSpecs: null}}", "c")
    assert load("", "c").sharing.strategy is Strategy.NONE
    assert load("", "c").sharing.of("nvidia.com/gpu").replicas == 1


@pytest.mark.parametrize("path", [(), ("flags",), ("flags", "plugin"), ("flags", "gfd"), ("sharing",), ("imex",)])
def test_s3_1_unknown_keys_are_refused_by_name(path: tuple[str, ...]) -> None:
    document: dict[str, Any] = yaml.safe_load(WHOLE)
    section = document
    for key in path:
        section = section[key]
    section["surprise"] = 1
    with pytest.raises(BadInput, match="unknown key surprise"):
        load(yaml.safe_dump(document), "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: v2", "unknown version: v2"),
        ("sharing: {timeSlicing: {}}", "no resources specified"),
        ("sharing: {timeSlicing: {resources: []}}", "no resources specified"),
        ("sharing: {timeSlicing: {resources: [{replicas: 2}]}}", "no resource name specified"),
        ("sharing: {mps: {resources: [{name: gpu}]}}", "no replicas specified"),
        ("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 1}]}}", "number of replicas must be >= 2"),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: some}]}}",
            "devices set as 'some' but the only valid string input is 'all'",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: 0}]}}",
            "devices set as '0' but a count of devices must be > 0",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: [x]}]}}",
            "unsupported type for device in devices list: x",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: {a: 1}}]}}",
            "unrecognized type for devices spec",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: {~: 1}}]}}",
            "unrecognized type for devices spec: {None: 1}",
        ),
        (
            "{flags: {migStrategy: mixed}, sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}}",
            "using --mig-strategy=mixed is not supported with MPS",
        ),
        (
            "sharing: {mps: {resources: [{name: mig-1g.5gb, replicas: 2}]}}",
            "MPS is not supported on MIG devices, such as nvidia.com/mig-1g.5gb; use nvidia.com/gpu",
        ),
        (
            "sharing: {mps: {resources: [{name: gpu, replicas: 49}]}}",
            "invalid device maximum allowed replicas exceeded: 49 > 48",
        ),
        ("flags: {mpsRoot: mps}", "flags.mpsRoot must be an absolute path, got 'mps'"),
        (
            "flags: {deviceDiscoveryStrategy: tegra}",
            "flags.deviceDiscoveryStrategy must be auto or nvml, got tegra, whose GPUs have no NVML",
        ),
        (
            "flags: {plugin: {deviceListStrategy: cdi-annotations, cdiAnnotationPrefix: nvidia.cdi.k8s.io/}}",
            "flags.plugin.cdiAnnotationPrefix must be cdi.k8s.io/, where container runtimes look",
        ),
        ("flags: {migStrategy: double}", "flags.migStrategy must be none, single or mixed, got"),
        ("imex: {channelIDs: [1]}", "imex.channelIDs[0] must be [] or [0], got 1"),
        ("sharing: {timeSlicing: {resources: [{name: gpu, replicas: two}]}}", "must be an integer from 2, got"),
        (
            f"sharing: {{timeSlicing: {{resources: [{{name: {'x' * 60}, replicas: 2}}]}}}}",
            "must have at most 63 characters",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}, {name: gpu, replicas: 3}]}}",
            "duplicate resource nvidia.com/gpu",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_nvidias_words(text: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        load(text, "c")
    assert str(refused.value).startswith("c")
    assert message in str(refused.value)


@pytest.mark.parametrize("devices", ["all", 3, [0, "1", "0:1", f"GPU-{'0' * 36}", f"MIG-GPU-{'0' * 36}/1/0"]])
def test_devices_and_renames_are_read_and_ignored_with_a_warning(devices: Any) -> None:
    resource = {"name": "gpu", "replicas": 2, "devices": devices, "rename": "other"}
    read = sharing(yaml.safe_dump({"timeSlicing": {"resources": [resource]}}, default_flow_style=True))
    assert read.sharing.of("nvidia.com/gpu").offered == "nvidia.com/gpu"
    assert [("rename" in each, "devices" in each) for each in read.warnings] == [(True, False), (False, True)][
        : len(read.warnings)
    ]
    assert len(read.warnings) == (1 if devices == "all" else 2)


def test_mps_goes_before_time_slicing_and_says_so() -> None:
    both = sharing(
        "{timeSlicing: {resources: [{name: gpu, replicas: 2}]}, mps: {resources: [{name: gpu, replicas: 48}]}}"
    )
    assert (both.sharing.strategy, both.sharing.of("nvidia.com/gpu").replicas) == (Strategy.MPS, 48)
    assert [warning for warning in both.warnings if "one sharing strategy at a time" in warning] == list(both.warnings)


def test_time_slicing_has_no_bound_of_replicas() -> None:
    read = sharing("{timeSlicing: {resources: [{name: gpu, replicas: 1000}]}}")
    assert read.sharing.of("nvidia.com/gpu").replicas == 1000


@pytest.mark.parametrize(("written", "warnings"), [("", 0), ("failRequestsGreaterThanOne: true, ", 0),
                                                   ("failRequestsGreaterThanOne: false, ", 1)])  # fmt: skip
def test_by_mps_a_container_has_one_replica_whatever_is_written(written: str, warnings: int) -> None:
    read = sharing(f"{{mps: {{{written}resources: [{{name: gpu, replicas: 2}}]}}}}")
    assert read.sharing.one_at_most
    assert len(read.warnings) == warnings
    assert not sharing("{timeSlicing: {resources: [{name: gpu, replicas: 2}]}}").sharing.one_at_most


def test_what_the_operator_says_goes_before_the_files_flags() -> None:
    read = load(WHOLE, "c", mig_strategy="mixed", mps_root="/other")
    assert (read.mig_strategy, read.mps_root) == ("mixed", "/other")


def test_the_documents_own_config_maps_are_read() -> None:
    held = [yaml.safe_load(text) for text in piped(seed("002")) if "kind: ConfigMap" in text]
    texts = {each["metadata"]["name"]: each["data"]["NVIDIA-A100-PCIE-40GB"] for each in held}
    slicing = load(texts["time-slicing-config"], "c").sharing
    assert (slicing.strategy, slicing.of("nvidia.com/gpu").replicas) == (Strategy.TIME_SLICING, 10)
    mps = load(texts["mps-enable-config"], "c").sharing
    assert (mps.strategy, mps.one_at_most) == (Strategy.MPS, True)
    assert mps.of("nvidia.com/gpu").offered == "nvidia.com/gpu", "renameByDefault is false where it is not set"


@pytest.mark.parametrize(
    ("label", "names", "default", "fallbacks", "chosen"),
    [
        ("a", ["a", "b"], "b", FALLBACKS, "a"),
        ("", ["a", "b"], "b", FALLBACKS, "b"),
        ("", ["default", "b"], "", FALLBACKS, "default"),
        ("", ["only"], "", FALLBACKS, "only"),
        ("", ["default"], "", ("empty", "named"), None),
        ("", ["a", "b"], "", FALLBACKS, None),
        ("", [], "", ("single", "empty"), None),
    ],
)
def test_s3_2_the_label_then_the_default_then_the_fallbacks(
    label: str, names: list[str], default: str, fallbacks: tuple[str, ...], chosen: str | None
) -> None:
    assert choose(label, names, default=default, fallbacks=fallbacks, where="m") == chosen


@pytest.mark.parametrize(
    ("label", "default", "fallbacks", "message"),
    [
        ("c", "", FALLBACKS, "m: specified config c does not exist; there are a, b"),
        ("", "c", FALLBACKS, "m: specified default config c does not exist; there are a, b"),
        ("", "", ("named", "single"), "the fallbacks named, single find none among a, b"),
    ],
)
def test_what_is_named_must_be_there(label: str, default: str, fallbacks: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        choose(label, ["b", "a"], default=default, fallbacks=fallbacks, where="m")
    assert message in str(refused.value)


def test_configurations_in_our_own_file_are_checked_when_it_is_read() -> None:
    assert load_ours("nativeDevices: {configs: {a: {version: v1}}}", "c").native_devices.configs == {
        "a": {"version": "v1"}
    }
    with pytest.raises(BadInput, match=r"c: nativeDevices\.configs\.a: unknown version: v2"):
        load_ours("nativeDevices: {configs: {a: {version: v2}}}", "c")
