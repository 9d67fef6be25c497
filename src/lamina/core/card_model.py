"""What NVML and CUDA say about a model of GPU."""

from enum import IntEnum

from msgspec import Struct


class Architecture(IntEnum):
    """The numbers are NVML's (nvmlDeviceGetArchitecture)."""

    VOLTA = 5
    TURING = 6
    AMPERE = 7
    ADA = 8
    HOPPER = 9
    BLACKWELL = 10


class Brand(IntEnum):
    """The numbers are NVML's (nvmlDeviceGetBrand)."""

    TESLA = 2
    GEFORCE = 5
    NVIDIA_RTX = 13
    NVIDIA = 14


class Card(Struct, frozen=True, kw_only=True):
    """One model of GPU. Memory in MiB unless the name says otherwise, clocks in MHz, power in watts."""

    key: str
    name: str
    """As NVML gives it."""
    memory_mib: int
    sms: int
    cores_per_sm: int
    compute: tuple[int, int]
    """CUDA compute capability."""
    architecture: Architecture
    brand: Brand = Brand.NVIDIA
    power_limit: int
    power_idle: int
    pci_device: int
    """PCI device id; the vendor is always 10de."""
    context_bytes: int
    """Device memory that one CUDA context takes."""
    mig_capable: bool = False
    ecc: bool | None = True
    """Whether its memory is checked as it is shipped; None for memory that cannot be."""
    threads_per_sm: int = 2048
    sm_clock: int
    memory_clock: int
    bus_width: int
    """Bits."""
    l2_kib: int
    shared_per_sm_kib: int
    pcie_generation: int = 4
    nvlinks: int = 0
    """NVLinks that the card has on a board of its kind; PCIe cards have none without a bridge."""
