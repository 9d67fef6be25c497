"""The limits and usage files of a container, from its grant."""

from pathlib import Path

from lamina.core.grants import ContainerGrant, Share
from lamina.core.quantities import MIB
from lamina.enforcement import DeviceLimit, Limits, write_container


def container_limits(container: ContainerGrant, shares: tuple[Share, ...]) -> Limits:
    """What the container may use. `shares` are its shares, by the index of their GPUs.

    A container without a priority has the lower of HAMi's two priorities.
    """
    devices = tuple(
        DeviceLimit(
            uuid=share.gpu,
            memory_bytes=share.limit_mib * MIB,
            request_bytes=share.memory_mib * MIB if share.most_memory_mib else 0,
            physical_bytes=share.physical_mib * MIB,
            cores_percent=share.cores,
            most_percent=share.most_cores,
            compute_policy=share.compute_policy,
        )
        for share in shares
    )
    priority = 1 if container.priority is None else container.priority
    return Limits(devices=devices, priority=priority, log_level=container.log_level)


def write_limits(folder: Path, container: ContainerGrant, shares: tuple[Share, ...]) -> None:
    """Write the container's limits and usage files. Raises BadInput for limits that cannot be enforced, and Outside."""
    write_container(folder, container_limits(container, shares))
