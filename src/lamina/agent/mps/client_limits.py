"""What each client of a GPU may use, as NVIDIA's MPS daemon does it, and the daemon's commands for it. Pure.

The GPU is divided equally: memory in whole MiB, threads in whole percent, both rounded down. MPS limits each client
process separately; a container with two processes gets both twice.
"""

import re

from msgspec import Struct

from lamina.core.sharing import MPS_CLIENTS, MPS_CLIENTS_BEFORE_VOLTA
from lamina.errors import BadInput
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
