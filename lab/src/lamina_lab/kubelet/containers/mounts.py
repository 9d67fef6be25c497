"""Mounts as environment variables, because mounting needs root.

A container's mounts matter to the lab only where the facade and the driver look for files at fixed paths. Each path
has an environment variable, which is used if the path does not exist.

    /etc/ld.so.preload      LD_PRELOAD: each file in it, with its path on the node
    /run/lamina             LAMINA_DIR: the directory of limits and usage
    /run/lamina-driver      LAMINA_DRIVER: the directory of the driver's libraries
    /mps/RESOURCE/pipe      CUDA_MPS_PIPE_DIRECTORY: the pipe directory of MPS
    /var/run/nvidia-container-devices/GPU  NVIDIA_VISIBLE_DEVICES: the GPUs, as NVIDIA's runtime reads them
"""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from lamina_lab.kubelet.device_manager.cdi import CdiMount

PRELOAD = "/etc/ld.so.preload"
MPS = "/mps/"
NVIDIA_DEVICES = "/var/run/nvidia-container-devices"
DIRECTORIES = {"/run/lamina": "LAMINA_DIR", "/run/lamina-driver": "LAMINA_DRIVER"}


def _read(path: str) -> str:
    return Path(path).read_text()


def environment(mounts: Sequence[CdiMount], read: Callable[[str], str] = _read) -> dict[str, str]:
    """The variables for `mounts`. Raises OSError if the preload file cannot be read."""
    result: dict[str, str] = {}
    for mount in mounts:
        if mount.container_path == PRELOAD:
            libraries = read(mount.host_path).replace(":", " ").split()
            result["LD_PRELOAD"] = ":".join(on_host(library, mounts) for library in libraries)
            continue
        if mount.container_path.startswith(MPS):
            result["CUDA_MPS_PIPE_DIRECTORY"] = mount.host_path
        for fixed, variable in DIRECTORIES.items():
            if mount.container_path == fixed:
                result[variable] = mount.host_path
            elif str(PurePosixPath(mount.container_path).parent) == fixed:
                # Its files are mounted one by one; on the node they are in one directory.
                result[variable] = str(PurePosixPath(mount.host_path).parent)
    # A mount replaces an earlier one at its path.
    named = dict.fromkeys(mount.container_path.removeprefix(f"{NVIDIA_DEVICES}/") for mount in mounts)
    if gpus := [name for name in named if not name.startswith(("/", "imex/"))]:
        result["NVIDIA_VISIBLE_DEVICES"] = ",".join(gpus)
    return result


def on_host(path: str, mounts: Sequence[CdiMount]) -> str:
    """The path on the node of the file that a container sees at `path`; the deepest mount counts."""
    for mount in sorted(mounts, key=lambda mount: len(mount.container_path), reverse=True):
        if path == mount.container_path:
            return mount.host_path
        if path.startswith(f"{mount.container_path.rstrip('/')}/"):
            return mount.host_path + path[len(mount.container_path.rstrip("/")) :]
    return path
