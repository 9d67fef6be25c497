"""What can be asked of NVML. Every call may raise `Outside` with a sentence that names NVML's error."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct


class GpuFacts(Struct, frozen=True):
    """One GPU that answers. `memory_mib` is None where the GPU has no memory of its own to report."""

    uuid: str
    index: int
    name: str
    memory_mib: int | None
    mig_capable: bool = False
    mig_enabled: bool = False
    numa: int | None = None
    compute: tuple[int, int] | None = None
    """CUDA's compute capability, such as (8, 0)."""
    pci_class: tuple[int, int] | None = None
    """Base class and subclass of the PCI device; (3, 2) is a 3D controller, (3, 0) one with a display."""
    virtual: bool = False
    """The GPU is a vGPU of a hypervisor."""
    links: Mapping[str, int] = {}
    """How well the GPU is connected to others, by their UUIDs; see `links`."""


class GpuProcess(NamedTuple):
    """A process with a context on a GPU; `memory_mib` is None where the driver does not tell."""

    pid: int
    memory_mib: int | None


class GpuReading(Struct, frozen=True, kw_only=True):
    """What one GPU says of itself now: bytes, percent of the last moments, degrees, watts. None: it does not tell."""

    bus_id: str = ""
    used_bytes: int | None = None
    free_bytes: int | None = None
    busy_percent: int | None = None
    memory_busy_percent: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None


class XidEvent(NamedTuple):
    """The driver reported an error. An empty `uuid` means that it could not say which GPU."""

    uuid: str
    xid: int


class Nvml(Protocol):
    """One node's NVML. A restarted driver is met again at the next call."""

    async def driver_version(self) -> str: ...

    async def cuda_version(self) -> tuple[int, int]:
        """The newest CUDA that the driver runs, such as (12, 4)."""
        ...

    async def gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that answer, by index. One that has fallen off the bus is missing."""
        ...

    async def readings(self) -> Mapping[str, GpuReading]:
        """What the GPUs that answer say of themselves now, by UUID."""
        ...

    async def processes(self, uuid: str) -> tuple[GpuProcess, ...]: ...

    async def limits_memory(self, uuid: str, cgroup: Path) -> bool:
        """Whether the driver itself can limit the memory of cgroups on a GPU; `cgroup` is any that exists."""
        ...

    async def limit_memory(self, uuid: str, cgroup: Path, limit: int | None) -> None:
        """Hold a cgroup to so many bytes of a GPU; None ends that. Raises Outside unless the driver confirms it."""
        ...

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        """The next critical error, or None when none came in time. Nothing is lost between two calls."""
        ...

    async def close(self) -> None: ...
