"""S3.1: what a container with devices by count gets, for each way in which NVIDIA's configuration can say it."""

from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.prepare import allocate_response
from lamina.agent.prepare.allocate_response import AssignedDevice, assigned_devices, visible_devices
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration.nvidia import load
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MigDevice
from lamina.ports.host import LinuxHost
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.nvml import MigInstanceFacts
from lamina.ports.nvml.fake import fake_gpus

FIRST, SECOND = fake_gpus(2)
A, B, PART = FIRST.uuid, SECOND.uuid, "MIG-p"
GPUS = {A: ObservedGpu(structs.replace(FIRST, minor=3)), B: ObservedGpu(SECOND)}
PARTS = (MigDevice(B, MigInstanceFacts(7, "1g.5gb", 0, PART, 2), MIG_CARDS["A100-40GB"].profile("1g.5gb")),)
VOLUMES = "/var/run/nvidia-container-devices"


class Host(LinuxHost):
    """The driver's list of minors is a file in `root`."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def mig_minors(self) -> str:
        path = self.root / "minors"
        return path.read_text() if path.exists() else ""


def filled(plugin: str, *units: str, flags: str = "", more: str = "", dev: Path | None = None) -> dict[str, object]:
    """What is answered, by kinds; `dev` is the folder in which the node has its /dev."""
    root = f"nvidiaDevRoot: {dev or '/nowhere'}"
    config = load(f"{{version: v1, flags: {{{root}, plugin: {{{plugin}}}{flags}}}{more}}}", "c")
    answer = messages.ContainerAllocateResponse()
    host = Host(dev or Path("/nowhere"))
    allocate_response.fill_response(answer, assigned_devices(units or (A,), GPUS, PARTS), config, host)
    return {
        "envs": dict(answer.envs),
        "mounts": [mount.container_path for mount in answer.mounts],
        "devices": [device.container_path for device in answer.devices],
    }


@pytest.mark.parametrize(
    ("plugin", "units", "envs", "mounts"),
    [
        ("", (A, B), {allocate_response.VISIBLE: f"{A},{B}"}, []),
        ("deviceListStrategy: envvar", (PART,), {allocate_response.VISIBLE: PART}, []),
        ("deviceIDStrategy: index", (B, A), {allocate_response.VISIBLE: "1,0"}, []),
        ("deviceIDStrategy: index", (PART,), {allocate_response.VISIBLE: "1:2"}, []),
        ("deviceListStrategy: volume-mounts", (A,), {allocate_response.VISIBLE: VOLUMES}, [f"{VOLUMES}/{A}"]),
        (
            "deviceListStrategy: [volume-mounts], deviceIDStrategy: index",
            (A, PART),
            {allocate_response.VISIBLE: VOLUMES},
            [f"{VOLUMES}/0", f"{VOLUMES}/1:2"],
        ),
        ("deviceListStrategy: [envvar, volume-mounts]", (A,), {allocate_response.VISIBLE: VOLUMES}, [f"{VOLUMES}/{A}"]),
        ("deviceListStrategy: cdi-annotations", (A,), {}, []),
        ("deviceListStrategy: [cdi-cri]", (A,), {}, []),
        ("deviceListStrategy: [envvar, cdi-cri]", (A,), {allocate_response.VISIBLE: A}, []),
    ],
)
def test_lists_of_devices(plugin: str, units: tuple[str, ...], envs: dict[str, str], mounts: list[str]) -> None:
    assert filled(plugin, *units) == {"envs": envs, "mounts": mounts, "devices": []}


@pytest.mark.parametrize(
    ("flag", "variable"), [("gdrcopyEnabled", "GDRCOPY"), ("gdsEnabled", "GDS"), ("mofedEnabled", "MOFED")]
)
def test_what_else_is_enabled(flag: str, variable: str) -> None:
    assert filled("", flags=f", {flag}: true")["envs"] == {
        allocate_response.VISIBLE: A,
        f"NVIDIA_{variable}": "enabled",
    }
    assert filled("", flags=f", {flag}: false")["envs"] == {allocate_response.VISIBLE: A}


def test_device_nodes_go_by_the_driver_and_those_that_are_optional_only_where_they_are(tmp_path: Path) -> None:
    assert filled("passDeviceSpecs: true")["devices"] == ["/dev/nvidia3"]
    (tmp_path / "dev").mkdir()
    for name in ("nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()
    nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia3", "/dev/nvidia1"]
    assert filled("passDeviceSpecs: true", A, B, dev=tmp_path)["devices"] == nodes


def test_a_mig_device_brings_the_nodes_of_its_instances(tmp_path: Path) -> None:
    lines = [
        "config 1",
        "gpu1/gi7/access 66",
        "gpu1/gi7/ci0/access 67",
        "gpu1/gi71/access 99",
        "gpu3/gi7/access 98",
        "",
    ]
    (tmp_path / "minors").write_text("\n".join(lines))
    caps = ["/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67"]
    assert filled("passDeviceSpecs: true", PART, dev=tmp_path)["devices"] == ["/dev/nvidia1", *caps]


def test_channels_of_a_fabric_are_given_where_they_are(tmp_path: Path) -> None:
    imex = ", imex: {channelIDs: [0], required: true}"
    assert filled("", more=imex)["envs"] == {allocate_response.VISIBLE: A}
    channel = tmp_path / "dev" / "nvidia-caps-imex-channels" / "channel0"
    channel.parent.mkdir(parents=True)
    channel.touch()
    assert filled("", more=imex, dev=tmp_path)["envs"] == {allocate_response.VISIBLE: A, "NVIDIA_IMEX_CHANNELS": "0"}
    both = filled("deviceListStrategy: volume-mounts, passDeviceSpecs: true", more=imex, dev=tmp_path)
    assert both["mounts"] == [f"{VOLUMES}/{A}", f"{VOLUMES}/imex/0"]
    assert both["devices"] == ["/dev/nvidia3", "/dev/nvidia-caps-imex-channels/channel0"]


@pytest.mark.parametrize(("required", "refused"), [("true", True), ("false", False)])
def test_a_channel_that_is_required_and_missing(required: str, refused: bool) -> None:
    config = load(
        f"{{version: v1, flags: {{nvidiaDevRoot: /nowhere}}, imex: {{channelIDs: [0], required: {required}}}}}", "c"
    )
    reason = "the IMEX channel 0 is required, but /nowhere/dev/nvidia-caps-imex-channels/channel0 does not exist"
    assert allocate_response.missing_channel(config, LinuxHost()) == (reason if refused else "")
    assert (
        allocate_response.missing_channel(load("version: v1\nimex: {channelIDs: [], required: true}", "c"), LinuxHost())
        == ""
    )


def test_the_answer_to_the_runtime_names_what_the_container_gets() -> None:
    chosen = [AssignedDevice(A, "0", 3), AssignedDevice(PART, "1:2", 1, 7)]
    assert visible_devices(chosen, load("version: v1", "c")) == f"{A},{PART}"
    assert visible_devices(chosen, load("flags: {plugin: {deviceIDStrategy: index}}", "c")) == "0,1:2"
    assert visible_devices(chosen, load("flags: {plugin: {deviceListStrategy: volume-mounts}}", "c")) == VOLUMES
    assert visible_devices(chosen, load("flags: {plugin: {deviceListStrategy: cdi-cri}}", "c")) == f"{A},{PART}"
    assert assigned_devices(["GPU-gone", B], GPUS, ()) == [AssignedDevice(B, "1", 1)]
