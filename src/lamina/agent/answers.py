"""What Allocate answers for devices that kubelet chose, by NVIDIA's configuration: variables, mounts, device nodes.

The container's CDI device carries NVIDIA_VISIBLE_DEVICES by itself, so it is there whatever the strategies are. In all
strategies it is our own CDI device: no other is needed to find the GPU.
"""

from collections.abc import Mapping, Sequence

from lamina.dialects.nvidia import NvidiaConfig
from lamina.ports.kubelet import deviceplugin_pb2 as messages

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_VOLUMES = "/var/run/nvidia-container-devices"
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


def fill(
    answer: messages.ContainerAllocateResponse, units: Sequence[str], config: NvidiaConfig, indices: Mapping[str, int]
) -> None:
    """Add what a container with these units gets. `indices` are those of the GPUs, by UUID."""
    named = [str(indices[unit]) if config.by_index and unit in indices else unit for unit in units]
    if "envvar" in config.list_strategies:
        answer.envs[VISIBLE] = ",".join(named)
    if "volume-mounts" in config.list_strategies:
        answer.envs[VISIBLE] = _VOLUMES
        for name in named:
            answer.mounts.add(host_path="/dev/null", container_path=f"{_VOLUMES}/{name}")
    for key, value in config.environment:
        answer.envs[key] = value
    if config.pass_device_specs:
        nodes = [*_CONTROL, *(f"nvidia{indices[unit]}" for unit in units if unit in indices)]
        for node in nodes:
            answer.devices.add(host_path=f"/dev/{node}", container_path=f"/dev/{node}", permissions="rw")
