"""What a GPU is and says of itself, and how it is divided."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, NamedTuple

from msgspec import Struct

from lamina.core.fields import Name, Natural, means
from lamina.core.mig import Engines


class Mode(StrEnum):
    """How one GPU is divided at a time. An idle GPU may change its mode, a busy one may not."""

    WHOLE = "whole"
    QUOTA = "quota"
    TIMESLICE = "timeslice"
    MPS = "mps"
    MIG = "mig"


class MigInstance(Struct, frozen=True, kw_only=True):
    """The place of a MIG instance on its GPU."""

    profile: Annotated[Name, means("MIG profile, such as 1g.5gb")]
    start: Annotated[Natural, means("Memory slice at which the instance begins")]


class MigAttributes(NamedTuple):
    """What a MIG device has."""

    memory_mib: int
    sms: int
    engines: Engines


class MigInstanceFacts(NamedTuple):
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
    instances: tuple[MigInstanceFacts, ...] = ()
    """Its MIG instances, by their ids; none while its MIG mode is off."""


WORK_LATELY_S = 1.2
"""For so long before it is asked, the driver says how much processes worked. It takes a sample every 1/6 to 1 s, and
answers with the average of those since then."""


class GpuReading(Struct, frozen=True, kw_only=True):
    """Bytes, percent of the last moments, degrees Celsius, watts; None where the driver does not say."""

    bus_id: str = ""
    used_bytes: int | None = None
    free_bytes: int | None = None
    busy_percent: int | None = None
    memory_busy_percent: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None

    @property
    def total_bytes(self) -> int | None:
        return None if self.used_bytes is None or self.free_bytes is None else self.used_bytes + self.free_bytes
