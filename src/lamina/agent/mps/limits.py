"""What each client of a GPU may have, as NVIDIA's MPS daemon sets it, and how the control program is told. Pure.

The GPU is shared in equal parts: memory in whole MiB, threads in whole percent, both rounded down. MPS holds every
client process to them by itself; a container with two processes has both twice.
"""

import re

from msgspec import Struct

from lamina.errors import BadInput
from lamina.model.sharing import MPS_CLIENTS, MPS_CLIENTS_BEFORE_VOLTA
from lamina.ports.nvml import GpuFacts

_VOLTA = (7, 0)
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMG]?)i?B?")
_MIB = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1.0, "G": 1024.0}
GET_THREADS = "get_default_active_thread_percentage"
GET_MEMORY = "get_default_device_pinned_mem_limit 0"


class Limits(Struct, frozen=True, kw_only=True):
    """Of each client process."""

    memory_mib: int
    threads_percent: int

    def commands(self) -> tuple[str, str]:
        """What the daemon is told. It serves one GPU, which has the index 0 there."""
        return (
            f"set_default_device_pinned_mem_limit 0 {self.memory_mib}M",
            f"set_default_active_thread_percentage {self.threads_percent}",
        )

    def __str__(self) -> str:
        return f"{self.memory_mib} MiB and {self.threads_percent} %"


def limits(facts: GpuFacts, replicas: int) -> Limits:
    """Those of a GPU that is offered so many times. Raises BadInput where it cannot be."""
    most = MPS_CLIENTS if (facts.compute or _VOLTA) >= _VOLTA else MPS_CLIENTS_BEFORE_VOLTA
    if replicas > most:
        raise BadInput(f"invalid device maximum allowed replicas exceeded: {replicas} > {most}")
    if not facts.memory_mib:
        raise BadInput("the GPU does not tell its memory, of which each client is to get an equal part")
    return Limits(memory_mib=facts.memory_mib // replicas, threads_percent=100 // replicas)


def told(threads: str, memory: str) -> Limits | None:
    """The limits in a daemon's answers to GET_THREADS and GET_MEMORY; None where they are not understood."""
    percent, amounts = _AMOUNT.search(threads), list(_AMOUNT.finditer(memory))
    if percent is None or not amounts:
        return None
    amount = amounts[-1]  # the device's number may stand before it
    return Limits(memory_mib=int(float(amount[1]) * _MIB[amount[2]]), threads_percent=int(float(percent[1])))
