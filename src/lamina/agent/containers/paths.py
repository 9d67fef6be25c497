"""Where the files of containers are on the node, what is in their limits files, and the facade as containers see it.

The facade has one directory per version, never changed after it is written. Running containers have the files of their
version mapped, and a newer agent installs a newer version next to them. The version contains part of the content's
hash, so that two builds of one release have different directories. A version that no CDI spec names any more is unused
and removed.
"""

import hashlib
import logging
import re
from pathlib import Path
from typing import NamedTuple

import lamina
from lamina.agent.containers import cdi
from lamina.agent.containers.cdi import Hook, Mount
from lamina.agent.state.settings import COVER, DRIVER, LIBRARIES
from lamina.core.grants import LOW, ContainerGrant, Share
from lamina.core.quantities import MIB
from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.enforcement.facade_copy import fitted_to
from lamina.enforcement.files import ARBITER, LIMITS, NEIGHBORS, SIGNAL, USAGE
from lamina.errors import NotYet, Outside
from lamina.ports.files import Files

log = logging.getLogger(__name__)

PRELOAD = "ld.so.preload"
_PROGRAMS = (*LIBRARIES, COVER)


class FacadeLibraries(NamedTuple):
    """An installed facade."""

    folder: Path
    version: str

    def mounts(self) -> list[Mount]:
        """The libraries at their versioned path, and the loader's list that names them."""
        inside = f"/usr/local/lamina/{self.version}"
        libraries = [Mount(self.folder / name, f"{inside}/{name}", executable=True) for name in LIBRARIES]
        return [*libraries, Mount(self.folder / PRELOAD, "/etc/ld.so.preload")]

    def hook(self) -> Hook:
        """Mounts the libraries over the driver's files in a container."""
        return Hook(self.folder / COVER, (str(self.folder),))


def install_libraries(facade: Path, into: Path, files: Files, driver: Path) -> FacadeLibraries:
    """Install the files of the directory `facade` below `into`, for the driver in the directory `driver`.

    Files that are there stay. A driver with other functions gets a version of its own. Raises Outside.
    """
    contents = {}
    for program in _PROGRAMS:
        content = files.read(facade / program)
        if content is None:
            raise Outside(f"the facade's file {facade / program} does not exist")
        contents[program] = fitted_to(content, driver / program) if program in DRIVER else content
    digest = hashlib.sha256(b"".join(contents[program] for program in _PROGRAMS)).hexdigest()[:8]
    version = f"{lamina.__version__}-{digest}"
    installed = FacadeLibraries(into / version, version)
    listed = "".join(f"/usr/local/lamina/{version}/{library}\n" for library in LIBRARIES)
    files.make_folder(installed.folder)
    for name, content in {**contents, PRELOAD: listed.encode()}.items():
        if not _has(files, installed.folder / name, content):
            files.write(installed.folder / name, content, mode=0o555 if name in _PROGRAMS else 0o444)
    return installed


def _has(files: Files, path: Path, content: bytes) -> bool:
    """A file that cannot be read now, because a container has a lease on it, is replaced by a new one."""
    try:
        return files.read(path) == content
    except Outside:
        return False


def remove_unused(current: FacadeLibraries, specs: Path, files: Files) -> None:
    """Remove the versions that neither this agent nor a spec in the directory `specs` uses. Raises Outside.

    A container that was started from a spec may restart from it until the spec is rewritten or removed.
    """
    root = current.folder.parent
    old = [version for version in files.names(root) if version != current.version]
    if not old:
        return
    texts = [files.read(specs / name) or b"" for name in files.names(specs) if cdi.name_of_file(name)]
    for version in old:
        if not any(f'"{root / version}/'.encode() in text for text in texts):
            log.info("Removing version %s of the facade: no container uses it", version)
            files.remove_tree(root / version)


_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


class HostPaths(NamedTuple):
    """Directories of the node, as the container runtime sees them."""

    containers: Path
    cdi: Path
    driver: Path
    libraries: FacadeLibraries


def limited_mounts(folder: Path, driver: Path, libraries: FacadeLibraries) -> tuple[Mount, ...]:
    """What holds a container to the limits in `folder`, together with the hook of `libraries`."""
    return (
        Mount(folder / LIMITS, f"/run/lamina/{LIMITS}"),
        Mount(folder / USAGE, f"/run/lamina/{USAGE}", writable=True),
        Mount(folder / ARBITER, f"/run/lamina/{ARBITER}"),
        Mount(folder / SIGNAL, f"/run/lamina/{SIGNAL}", writable=True),
        Mount(folder / NEIGHBORS, f"/run/lamina/{NEIGHBORS}"),
        Mount(driver, "/run/lamina-driver", executable=True),
        *libraries.mounts(),
    )


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
    priority = LOW if container.priority is None else container.priority
    return Limits(devices=devices, priority=priority, log_level=container.log_level)


def write_limits(folder: Path, container: ContainerGrant, shares: tuple[Share, ...]) -> None:
    """Write the container's limits and usage files. Raises BadInput for limits that cannot be enforced, and Outside."""
    write_container(folder, container_limits(container, shares))
