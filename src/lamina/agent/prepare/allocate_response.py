"""What Allocate answers for native devices, by NVIDIA's configuration: variables, mounts, device nodes.

In all strategies the container gets a CDI device of ours, which tells NVIDIA's runtime what to add: with
cdi-annotations and cdi-cri by UUIDs, otherwise in the form of the strategy.

    envvar          NVIDIA_VISIBLE_DEVICES is the list; NVIDIA_IMEX_CHANNELS that of the channels
    volume-mounts   NVIDIA_VISIBLE_DEVICES is a directory, each device a mount below it, and channels are below imex/
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.cdi import VISIBLE, VOLUMES
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.mig_devices import MigDevice
from lamina.ports.host import Host
from lamina.ports.kubelet import deviceplugin_pb2 as messages

_IMEX = "NVIDIA_IMEX_CHANNELS"
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
"""Device nodes that a container gets if they exist."""
_CHANNEL = "nvidia-caps-imex-channels/channel"


class AssignedDevice(NamedTuple):
    """A GPU or MIG device of a container. `ordinal` is NVIDIA's index: 0, or 0:1 for the MIG device 1 of GPU 0.

    `minor` is the number of the GPU's device node, `instance` the GPU instance of a MIG device.
    """

    uuid: str
    ordinal: str
    minor: int
    instance: int | None = None


def assigned_devices(
    units: Sequence[str], gpus: Mapping[str, ObservedGpu], mig_devices: Sequence[MigDevice]
) -> list[AssignedDevice]:
    """Those of the units that exist."""
    existing = {}
    for uuid, (facts, *_) in gpus.items():
        minor = facts.index if facts.minor is None else facts.minor
        existing[uuid] = AssignedDevice(uuid, str(facts.index), minor)
    for gpu, instance, _ in mig_devices:
        if gpu in existing:
            ordinal = f"{existing[gpu].ordinal}:{instance.ordinal}"
            existing[instance.uuid] = AssignedDevice(instance.uuid, ordinal, existing[gpu].minor, instance.id)
    return [existing[unit] for unit in units if unit in existing]


def visible_devices(assigned: Sequence[AssignedDevice], config: NvidiaConfig) -> str:
    """The value of NVIDIA_VISIBLE_DEVICES in the container."""
    if "volume-mounts" in config.list_strategies:
        return VOLUMES
    return ",".join(_identifiers(assigned, config))


def fill_response(
    response: messages.ContainerAllocateResponse, assigned: Sequence[AssignedDevice], config: NvidiaConfig, host: Host
) -> None:
    """Add what a container with these devices gets."""
    dev = Path(config.dev_root) / "dev"
    channels = [str(number) for number in config.imex_channels if host.has_device(dev / f"{_CHANNEL}{number}")]
    if {"envvar", "volume-mounts"} & set(config.list_strategies):
        response.envs[VISIBLE] = visible_devices(assigned, config)
    if "envvar" in config.list_strategies and channels:
        response.envs[_IMEX] = ",".join(channels)
    if "volume-mounts" in config.list_strategies:
        for name in (*_identifiers(assigned, config), *(f"imex/{channel}" for channel in channels)):
            response.mounts.add(host_path="/dev/null", container_path=f"{VOLUMES}/{name}")
    for key, value in config.environment:
        response.envs[key] = value
    if config.pass_device_specs:
        control = [node for node in _CONTROL if host.has_device(dev / node)]
        own = [node for device in assigned for node in _device_nodes(device, host)]
        for node in dict.fromkeys((*control, *own, *(f"{_CHANNEL}{channel}" for channel in channels))):
            response.devices.add(host_path=str(dev / node), container_path=f"/dev/{node}", permissions="rw")


def missing_channel(config: NvidiaConfig, host: Host) -> str:
    """Why nothing can be allocated: an IMEX channel is required and does not exist. Empty if that is not so."""
    dev = Path(config.dev_root) / "dev"
    missing = [number for number in config.imex_channels if not host.has_device(dev / f"{_CHANNEL}{number}")]
    if not config.imex_required or not missing:
        return ""
    return f"the IMEX channel {missing[0]} is required, but {dev / _CHANNEL}{missing[0]} does not exist"


def _identifiers(assigned: Sequence[AssignedDevice], config: NvidiaConfig) -> list[str]:
    return [device.ordinal if config.by_index else device.uuid for device in assigned]


def _device_nodes(device: AssignedDevice, host: Host) -> list[str]:
    """The nodes below /dev by which a container opens its GPU and the instances of a MIG device."""
    nodes = [f"nvidia{device.minor}"]
    if device.instance is not None:
        instance = f"gpu{device.minor}/gi{device.instance}"
        lines = [line.split() for line in host.mig_minors().splitlines()]
        capabilities = (f"{instance}/access", f"{instance}/ci0/access")
        nodes += [f"nvidia-caps/nvidia-cap{line[1]}" for line in lines if len(line) == 2 and line[0] in capabilities]
    return nodes
