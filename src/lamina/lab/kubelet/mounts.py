"""Mounts as environment: what the lab does instead of the one thing that it cannot do without root.

A container's mounts only matter to the lab where the facade and the driver look for files at fixed paths. Each has an
environment variable beside it, honoured where the path does not exist.

    /etc/ld.so.preload      LD_PRELOAD, each file in it named where it lies on the node
    /run/lamina             LAMINA_DIR, the directory of limits and usage
    /run/lamina-driver      LAMINA_DRIVER, the directory of the driver's libraries
    /mps/RESOURCE/pipe      CUDA_MPS_PIPE_DIRECTORY, the pipe directory of MPS
    /var/run/nvidia-container-devices/GPU  NVIDIA_VISIBLE_DEVICES, the GPUs named, as NVIDIA's runtime reads them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from lamina.lab.kubelet.cdi import Mount

PRELOAD = "/etc/ld.so.preload"
MPS = "/mps/"
NVIDIA_DEVICES = "/var/run/nvidia-container-devices"
DIRECTORIES = {"/run/lamina": "LAMINA_DIR", "/run/lamina-driver": "LAMINA_DRIVER"}


def _read(path: str) -> str:
    return Path(path).read_text()


def environment(mounts: Sequence[Mount], read: Callable[[str], str] = _read) -> dict[str, str]:
    """The variables that stand for `mounts`. Raises OSError where the preload file cannot be read."""
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
                # Its files are mounted one by one; on the node they lie in one directory too.
                result[variable] = str(PurePosixPath(mount.host_path).parent)
    named = [each.container_path.removeprefix(f"{NVIDIA_DEVICES}/") for each in mounts]
    if gpus := [name for name in named if not name.startswith(("/", "imex/"))]:
        result["NVIDIA_VISIBLE_DEVICES"] = ",".join(gpus)
    return result


def on_host(path: str, mounts: Sequence[Mount]) -> str:
    """Where the file that a container sees at `path` lies on the node; the deepest mount counts."""
    for mount in sorted(mounts, key=lambda mount: len(mount.container_path), reverse=True):
        if path == mount.container_path:
            return mount.host_path
        if path.startswith(f"{mount.container_path.rstrip('/')}/"):
            return mount.host_path + path[len(mount.container_path.rstrip("/")) :]
    return path
