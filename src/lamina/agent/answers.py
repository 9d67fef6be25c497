"""What Allocate answers for devices that kubelet chose, by NVIDIA's configuration: variables, mounts, device nodes.

In all strategies the container's device is our own CDI device, which tells NVIDIA's runtime what to bring in: with
cdi-annotations and cdi-cri by UUIDs, else in the way that the strategy says.

    envvar          NVIDIA_VISIBLE_DEVICES is the list; NVIDIA_IMEX_CHANNELS that of the channels
    volume-mounts   NVIDIA_VISIBLE_DEVICES is a folder, and each device a mount below it; channels are below imex/
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent.health import GpuState
from lamina.agent.mig.offering import MigDevice
from lamina.dialects.nvidia import NvidiaConfig
from lamina.ports.kubelet import deviceplugin_pb2 as messages

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
MIG_MINORS = Path("/proc/driver/nvidia-caps/mig-minors")
"""Where the driver says which device nodes open instances."""
_IMEX = "NVIDIA_IMEX_CHANNELS"
_VOLUMES = "/var/run/nvidia-container-devices"
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
"""Device nodes that a container gets where they are there."""
_CHANNEL = "nvidia-caps-imex-channels/channel"


class Chosen(NamedTuple):
    """A GPU or MIG device that a container gets. `ordinal` is NVIDIA's index: 0, or 0:1 for the MIG device 1 of GPU 0.

    `minor` is the number of the GPU's device node, `instance` a MIG device's GPU instance.
    """

    uuid: str
    ordinal: str
    minor: int
    instance: int | None = None


def known(units: Sequence[str], gpus: Mapping[str, GpuState], parts: Sequence[MigDevice]) -> list[Chosen]:
    """Those of the units that are there."""
    found = {}
    for uuid, (facts, *_) in gpus.items():
        found[uuid] = Chosen(uuid, str(facts.index), facts.index if facts.minor is None else facts.minor)
    for gpu, instance, _ in parts:
        if gpu in found:
            ordinal = f"{found[gpu].ordinal}:{instance.ordinal}"
            found[instance.uuid] = Chosen(instance.uuid, ordinal, found[gpu].minor, instance.id)
    return [found[unit] for unit in units if unit in found]


def visible(chosen: Sequence[Chosen], config: NvidiaConfig) -> str:
    """What NVIDIA_VISIBLE_DEVICES is in the container."""
    if "volume-mounts" in config.list_strategies:
        return _VOLUMES
    return ",".join(_named(chosen, config))


def fill(
    answer: messages.ContainerAllocateResponse,
    chosen: Sequence[Chosen],
    config: NvidiaConfig,
    minors: Path = MIG_MINORS,
) -> None:
    """Add what a container with these gets."""
    folder = Path(config.dev_root) / "dev"
    channels = [str(number) for number in config.imex_channels if (folder / f"{_CHANNEL}{number}").exists()]
    if {"envvar", "volume-mounts"} & set(config.list_strategies):
        answer.envs[VISIBLE] = visible(chosen, config)
    if "envvar" in config.list_strategies and channels:
        answer.envs[_IMEX] = ",".join(channels)
    if "volume-mounts" in config.list_strategies:
        for name in (*_named(chosen, config), *(f"imex/{channel}" for channel in channels)):
            answer.mounts.add(host_path="/dev/null", container_path=f"{_VOLUMES}/{name}")
    for key, value in config.environment:
        answer.envs[key] = value
    if config.pass_device_specs:
        control = [node for node in _CONTROL if (folder / node).exists()]
        own = [node for each in chosen for node in _nodes(each, minors)]
        for node in dict.fromkeys((*control, *own, *(f"{_CHANNEL}{channel}" for channel in channels))):
            answer.devices.add(host_path=str(folder / node), container_path=f"/dev/{node}", permissions="rw")


def missing(config: NvidiaConfig) -> str:
    """Which IMEX channel is required and not there, as a reason not to allocate; or nothing."""
    folder = Path(config.dev_root) / "dev"
    gone = [number for number in config.imex_channels if not (folder / f"{_CHANNEL}{number}").exists()]
    if not config.imex_required or not gone:
        return ""
    return f"the IMEX channel {gone[0]} is required, but {folder / _CHANNEL}{gone[0]} is not there"


def _named(chosen: Sequence[Chosen], config: NvidiaConfig) -> list[str]:
    return [each.ordinal if config.by_index else each.uuid for each in chosen]


def _nodes(each: Chosen, minors: Path) -> list[str]:
    """The device nodes below /dev by which a container opens its GPU and, of a MIG device, its instances."""
    nodes = [f"nvidia{each.minor}"]
    if each.instance is not None:
        instance = f"gpu{each.minor}/gi{each.instance}"
        try:
            lines = [line.split() for line in minors.read_text().splitlines()]
        except OSError:
            return nodes
        wanted = (f"{instance}/access", f"{instance}/ci0/access")
        nodes += [f"nvidia-caps/nvidia-cap{line[1]}" for line in lines if len(line) == 2 and line[0] in wanted]
    return nodes
