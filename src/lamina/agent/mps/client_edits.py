"""What a container needs to be an MPS client, as NVIDIA's plugin gives it: a pipe directory and shared memory."""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.agent.containers.cdi import Mount
from lamina.ports.mps import Home

PIPE = "CUDA_MPS_PIPE_DIRECTORY"


class ClientEdits(NamedTuple):
    """Variables and mounts in addition to those of the GPU itself."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()


NO_EDITS = ClientEdits()


def client_edits(resource: str, home: Home) -> ClientEdits:
    """For a container with a replica of `resource` of the GPU that is served from `home`."""
    pipe = f"/mps/{resource}/pipe"
    return ClientEdits(
        {PIPE: pipe}, (Mount(home.pipe, pipe, writable=True), Mount(home.shm, "/dev/shm", writable=True))
    )
