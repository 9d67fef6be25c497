"""What a container gets to be a client of MPS, as NVIDIA's plugin gives it: a pipe directory and shared memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lamina.agent.cdi import Mount
from lamina.ports.mps import Home

PIPE = "CUDA_MPS_PIPE_DIRECTORY"


class Edits(NamedTuple):
    """Variables and mounts beside those of the GPU itself."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()


NONE = Edits()


def client(resource: str, home: Home, shm: Path) -> Edits:
    """Of a container with a replica of `resource`. `shm` is the host's folder that the daemon has as /dev/shm."""
    pipe = f"/mps/{resource}/pipe"
    return Edits({PIPE: pipe}, (Mount(home.pipe, pipe, writable=True), Mount(shm, "/dev/shm", writable=True)))
