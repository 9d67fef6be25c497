"""The two files that hold a container to its shares, made from its grant."""

from pathlib import Path

from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.model.grants import ContainerGrant, Share
from lamina.model.quantities import MIB


def limits(container: ContainerGrant, shares: tuple[Share, ...]) -> Limits:
    """What the container may use; `shares` are its own in the order of their GPUs' indices.

    A container without a priority has the lower one of HAMi's two.
    """
    devices = tuple(
        DeviceLimit(
            uuid=share.gpu,
            memory_bytes=share.memory_mib * MIB,
            physical_bytes=share.physical_mib * MIB,
            cores_percent=share.cores,
            compute_policy=share.compute_policy,
        )
        for share in shares
    )
    priority = 1 if container.priority is None else container.priority
    return Limits(devices=devices, priority=priority, log_level=container.log_level)


def write_limits(folder: Path, container: ContainerGrant, shares: tuple[Share, ...]) -> None:
    """Write the container's limits and usage into its folder. Raises BadInput for limits that cannot be held, and
    Outside when the file system refuses."""
    write_container(folder, limits(container, shares))
