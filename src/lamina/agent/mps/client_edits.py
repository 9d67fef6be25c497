"""What a container needs to be an MPS client, as NVIDIA's plugin gives it: a pipe directory and shared memory."""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.agent.containers.cdi import Mount
from lamina.core.grants import Share
from lamina.ports.mps import Home

PIPE = "CUDA_MPS_PIPE_DIRECTORY"


class ClientEdits(NamedTuple):
    """Variables and mounts in addition to those of the GPU itself."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()


NO_EDITS = ClientEdits()
THREADS, MEMORY = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
"""The limits of a client. The daemon holds each process to them, or to its own where those are lower."""


def client_edits(resource: str, home: Home) -> ClientEdits:
    """For a container with a replica of `resource` of the GPU that is served from `home`."""
    pipe = f"/mps/{resource}/pipe"
    return ClientEdits(
        {PIPE: pipe}, (Mount(home.pipe, pipe, writable=True), Mount(home.shm, "/dev/shm", writable=True))
    )


def share_edits(resource: str, home: Home, share: Share) -> ClientEdits:
    """For a container whose grant has this share of the GPU. It is the client's only GPU, so its number is 0."""
    edits = client_edits(resource, home)
    limits = {MEMORY: f"0={share.limit_mib}M"} | ({THREADS: str(share.cores)} if share.cores else {})
    return edits._replace(env={**edits.env, **limits})
