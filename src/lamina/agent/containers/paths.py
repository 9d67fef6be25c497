"""Where the files of containers are on the node, and what is in their limits files."""

import re
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.libraries import FacadeLibraries
from lamina.core.grants import ContainerGrant, Share
from lamina.core.quantities import MIB
from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.errors import NotYet
from lamina.ports.files import Files

LIMITS, USAGE, ARBITER = "limits", "usage", "arbiter"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


class HostPaths(NamedTuple):
    """Directories of the node, as the container runtime sees them."""

    containers: Path
    cdi: Path
    driver: Path
    libraries: FacadeLibraries


def folder_name(pod_uid: str, container: str) -> str:
    """The name of a container's directory. Raises NotYet for names that Kubernetes would not accept."""
    for part in (pod_uid, container):
        if _SAFE.fullmatch(part) is None:
            raise NotYet(f"{part!r} is not a valid pod UID or container name")
    return f"{pod_uid}_{container}"


def folder_names(containers: Path, files: Files) -> list[str]:
    """The names of all directories of containers. What is hidden next to them is the agent's own. Raises Outside."""
    return [name for name in files.names(containers) if not name.startswith(".")]


def pod_uid_of(folder: str) -> str:
    """The UID of the pod to which a container's directory belongs, by its name."""
    return folder.partition("_")[0]


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
