"""What can be asked of NVML. Every call may raise `Outside` with a sentence that names NVML's error."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

from lamina.model.mig import Engines, MigCard, Placed


class MigAttributes(NamedTuple):
    """What a MIG device has."""

    memory_mib: int
    sms: int
    engines: Engines


class MigInstance(NamedTuple):
    """An instance of a GPU. `uuid` names its MIG device; it is empty where the instance was left half made.

    `ordinal` is the number of the MIG device on its GPU, as nvidia-smi shows it. `attributes` are what the driver says
    of the device; None where it does not.
    """

    id: int
    profile: str
    start: int
    uuid: str
    ordinal: int = 0
    attributes: MigAttributes | None = None


class GpuFacts(Struct, frozen=True):
    """One GPU that answers. `memory_mib` is None where the GPU has no memory of its own to report."""

    uuid: str
    index: int
    name: str
    memory_mib: int | None
    mig_capable: bool = False
    mig_enabled: bool = False
    pci_device: int = 0
    """PCI device id in the upper half, vendor in the lower, as NVML and mig-parted's device-filter have it."""
    numa: int | None = None
    compute: tuple[int, int] | None = None
    """CUDA's compute capability, such as (8, 0)."""
    pci_class: tuple[int, int] | None = None
    """Base class and subclass of the PCI device; (3, 2) is a 3D controller, (3, 0) one with a display."""
    remapping_failed: bool = False
    """Rows of memory were faulty and there was nothing left in their place."""
    retired_pages: int | None = None
    """Pages of memory that the driver uses no more because of errors; None where it does not tell."""
    sram_errors: int | None = None
    """Errors of SRAM that could not be corrected, in the GPU's life; None where it does not tell."""
    virtual: bool = False
    """The GPU is a vGPU of a hypervisor."""
    minor: int | None = None
    """The number of its device node, /dev/nvidia<minor>, which need not be its index."""
    fabric: str = ""
    """Its place among machines that share one NVLink fabric, `<cluster's UUID>.<clique>`; empty outside of one."""
    links: Mapping[str, int] = {}
    """How well the GPU is connected to others, by their UUIDs; see `links`."""
    instances: tuple[MigInstance, ...] = ()
    """Its MIG instances, by their ids; none while its MIG mode is off."""


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
        """What the GPUs that answer and their MIG devices say of themselves now, by UUID."""
        ...

    async def processes(self, uuid: str) -> tuple[GpuProcess, ...]: ...

    async def set_exclusive(self, uuid: str, on: bool) -> None:
        """Let one process at a time have contexts on the GPU, which is what MPS needs for its server; or any number.

        Nothing is written where that is so already.
        """
        ...

    async def limits_memory(self, uuid: str, cgroup: Path) -> bool:
        """Whether the driver itself can limit the memory of cgroups on a GPU; `cgroup` is any that exists."""
        ...

    async def limit_memory(self, uuid: str, cgroup: Path, limit: int | None) -> None:
        """Hold a cgroup to so many bytes of a GPU; None ends that. Raises Outside unless the driver confirms it."""
        ...

    async def mig_card(self, uuid: str) -> MigCard:
        """What a GPU that is capable of MIG can be cut into."""
        ...

    async def mig_instances(self, uuid: str) -> tuple[MigInstance, ...]:
        """The instances of a GPU, by their ids; none while its MIG mode is off."""
        ...

    async def set_mig_mode(self, uuid: str, on: bool) -> bool:
        """Ask for a mode. Whether it is in force now; else it is pending because the GPU is in use."""
        ...

    async def create_mig(self, uuid: str, place: Placed) -> MigInstance:
        """Make an instance at a place. Whoever is killed in between may leave one that is half made."""
        ...

    async def destroy_mig(self, uuid: str, instance: int) -> None:
        """Destroy an instance by its id, half made or whole; one that is gone is well. Raises Outside while in use."""
        ...

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        """The next critical error, or None when none came in time. Nothing is lost between two calls."""
        ...

    async def close(self) -> None: ...
