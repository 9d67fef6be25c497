"""What each client of MPS may use, as NVIDIA's daemon does it, and what a container needs to be one. Pure.

The GPU is divided equally: memory in whole MiB, threads in whole percent, both rounded down. MPS limits each client
process separately; a container with two processes gets both twice. A container gets a pipe directory and shared memory,
as NVIDIA's plugin gives them.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from lamina.agent.containers.cdi import Mount
from lamina.core.grants import Share
from lamina.core.sharing import MPS_CLIENTS, MPS_CLIENTS_BEFORE_VOLTA
from lamina.errors import BadInput
from lamina.ports.mps import Home
from lamina.ports.nvml import GpuFacts

_VOLTA = (7, 0)
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMG]?)i?B?")
_MIB = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1.0, "G": 1024.0}
GET_THREADS = "get_default_active_thread_percentage"
GET_MEMORY = "get_default_device_pinned_mem_limit 0"


class ClientLimits(Struct, frozen=True, kw_only=True):
    """For each client process."""

    memory_mib: int
    threads_percent: int

    def commands(self) -> tuple[str, str]:
        """The commands that set the limits. The daemon serves one GPU, which has the index 0 there."""
        return (
            f"set_default_device_pinned_mem_limit 0 {self.memory_mib}M",
            f"set_default_active_thread_percentage {self.threads_percent}",
        )

    def __str__(self) -> str:
        return f"{self.memory_mib} MiB and {self.threads_percent} %"


def client_limits(facts: GpuFacts, replicas: int) -> ClientLimits:
    """The limits on a GPU with this many replicas. Raises BadInput if it cannot have as many."""
    most = MPS_CLIENTS if (facts.compute or _VOLTA) >= _VOLTA else MPS_CLIENTS_BEFORE_VOLTA
    if replicas > most:
        raise BadInput(f"invalid device maximum allowed replicas exceeded: {replicas} > {most}")
    if not facts.memory_mib:
        raise BadInput("cannot divide the GPU's memory between MPS clients: NVML does not report its size")
    return ClientLimits(memory_mib=facts.memory_mib // replicas, threads_percent=100 // replicas)


def parse_limits(threads: str, memory: str) -> ClientLimits | None:
    """The limits in a daemon's answers to GET_THREADS and GET_MEMORY; None if they cannot be parsed."""
    percent, amounts = _AMOUNT.search(threads), list(_AMOUNT.finditer(memory))
    if percent is None or not amounts:
        return None
    amount = amounts[-1]  # the device's number may come before it
    return ClientLimits(memory_mib=int(float(amount[1]) * _MIB[amount[2]]), threads_percent=int(float(percent[1])))


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
