"""What a container needs to be an MPS client, as NVIDIA's plugin gives it: a pipe directory and shared memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.cdi import Mount
from lamina.ports.mps import Home

PIPE = "CUDA_MPS_PIPE_DIRECTORY"


class ClientEdits(NamedTuple):
    """Variables and mounts in addition to those of the GPU itself."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()


NO_EDITS = ClientEdits()


def client_edits(resource: str, home: Home, shm: Path) -> ClientEdits:
    """For a container with a replica of `resource`. `shm` is the host directory that the daemon has as /dev/shm."""
    pipe = f"/mps/{resource}/pipe"
    return ClientEdits({PIPE: pipe}, (Mount(home.pipe, pipe, writable=True), Mount(shm, "/dev/shm", writable=True)))
