"""What the driver says of a GPU and of its MIG instances when it is asked for all of them."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from lamina.core.mig import Engines


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
