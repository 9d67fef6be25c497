"""The cards that Lamina knows by name: what NVML and CUDA say about each of them. Those of workstations have a table of
their own.

Memory is what nvidia-smi shows as the total, in MiB: with the R470 driver for the 16 GB V100, R510 and newer for the
others (older drivers subtract what they reserve). SMs, clocks and bus widths are from NVIDIA's data sheets, PCI ids
from the public PCI id list. The cost of a context depends on driver and program; 303 MiB on a V100 is measured,
the others are of the size that people report.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lamina.core.card_model import Architecture, Brand, Card
from lamina.core.workstation_cards import WORKSTATION_CARDS
from lamina.errors import BadInput
from lamina.name_hints import nearest

_MIB = 1 << 20


def _volta(key: str, name: str, memory: int, watts: int, device: int, clock: int) -> Card:
    return Card(
        key=key, name=name, memory_mib=memory, sms=80, cores_per_sm=64, compute=(7, 0),
        architecture=Architecture.VOLTA, brand=Brand.TESLA, power_limit=watts, power_idle=watts // 10,
        pci_device=device, context_bytes=303 * _MIB, sm_clock=clock, memory_clock=877, bus_width=4096, l2_kib=6144,
        shared_per_sm_kib=96, pcie_generation=3, nvlinks=6 if "SXM" in key else 0,
    )  # fmt: skip


def _a100(key: str, name: str, memory: int, watts: int, device: int, memory_clock: int) -> Card:
    return Card(
        key=key, name=name, memory_mib=memory, sms=108, cores_per_sm=64, compute=(8, 0),
        architecture=Architecture.AMPERE, power_limit=watts, power_idle=45, pci_device=device,
        context_bytes=412 * _MIB, mig_capable=True, sm_clock=1410, memory_clock=memory_clock, bus_width=5120,
        l2_kib=40960, shared_per_sm_kib=164, nvlinks=12 if "SXM" in key else 0,
    )  # fmt: skip


def _hopper(key: str, name: str, memory: int, sms: int, watts: int, device: int, clocks: tuple[int, int]) -> Card:
    return Card(
        key=key, name=name, memory_mib=memory, sms=sms, cores_per_sm=128, compute=(9, 0),
        architecture=Architecture.HOPPER, power_limit=watts, power_idle=70, pci_device=device,
        context_bytes=526 * _MIB, mig_capable=True, sm_clock=clocks[0], memory_clock=clocks[1],
        bus_width=6016 if key == "H200" else 5120, l2_kib=61440 if key == "H200" else 51200,
        shared_per_sm_kib=228, pcie_generation=5, nvlinks=0 if "PCIE" in key else 18,
    )  # fmt: skip


_ALL = (
    _volta("V100-SXM2-16GB", "Tesla V100-SXM2-16GB", 16160, 300, 0x1DB1, 1530),
    _volta("V100-SXM2-32GB", "Tesla V100-SXM2-32GB", 32768, 300, 0x1DB5, 1530),
    _volta("V100-PCIE-32GB", "Tesla V100-PCIE-32GB", 32768, 250, 0x1DB6, 1380),
    _a100("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 40960, 400, 0x20B0, 1215),
    _a100("A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB", 40960, 250, 0x20F1, 1215),
    _a100("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", 81920, 400, 0x20B2, 1593),
    _a100("A100-PCIE-80GB", "NVIDIA A100 80GB PCIe", 81920, 300, 0x20B5, 1512),
    _hopper("H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", 81559, 132, 700, 0x2330, (1980, 2619)),
    _hopper("H100-PCIE-80GB", "NVIDIA H100 PCIe", 81559, 114, 350, 0x2331, (1755, 1593)),
    _hopper("H200", "NVIDIA H200", 143771, 132, 700, 0x2335, (1980, 3201)),
    Card(
        key="A30", name="NVIDIA A30", memory_mib=24576, sms=56, cores_per_sm=64, compute=(8, 0),
        architecture=Architecture.AMPERE, power_limit=165, power_idle=30, pci_device=0x20B7,
        context_bytes=412 * _MIB, mig_capable=True, sm_clock=1440, memory_clock=1215, bus_width=3072, l2_kib=24576,
        shared_per_sm_kib=164,
    ),
    Card(
        key="A10", name="NVIDIA A10", memory_mib=23028, sms=72, cores_per_sm=128, compute=(8, 6),
        architecture=Architecture.AMPERE, power_limit=150, power_idle=20, pci_device=0x2236,
        context_bytes=258 * _MIB, threads_per_sm=1536, sm_clock=1695, memory_clock=6251, bus_width=384, l2_kib=6144,
        shared_per_sm_kib=100,
    ),
    Card(
        key="T4", name="Tesla T4", memory_mib=15360, sms=40, cores_per_sm=64, compute=(7, 5),
        architecture=Architecture.TURING, brand=Brand.TESLA, power_limit=70, power_idle=9, pci_device=0x1EB8,
        context_bytes=160 * _MIB, threads_per_sm=1024, sm_clock=1590, memory_clock=5001, bus_width=256, l2_kib=4096,
        shared_per_sm_kib=64, pcie_generation=3,
    ),
    Card(
        key="L4", name="NVIDIA L4", memory_mib=23034, sms=58, cores_per_sm=128, compute=(8, 9),
        architecture=Architecture.ADA, power_limit=72, power_idle=12, pci_device=0x27B8, context_bytes=252 * _MIB,
        threads_per_sm=1536, sm_clock=2040, memory_clock=6251, bus_width=192, l2_kib=49152, shared_per_sm_kib=100,
    ),
    Card(
        key="L40S", name="NVIDIA L40S", memory_mib=46068, sms=142, cores_per_sm=128, compute=(8, 9),
        architecture=Architecture.ADA, power_limit=350, power_idle=35, pci_device=0x26B9, context_bytes=400 * _MIB,
        threads_per_sm=1536, sm_clock=2520, memory_clock=9001, bus_width=384, l2_kib=98304, shared_per_sm_kib=100,
    ),
    *WORKSTATION_CARDS,
)  # fmt: skip

CARDS: Mapping[str, Card] = MappingProxyType({card.key: card for card in _ALL})
"""Every known card by its key, such as ``V100-SXM2-32GB``."""


def card(name: str) -> Card:
    """The card of this key or NVML name, in any case of letters, with spaces or, as in labels, dashes. A name may lack
    NVIDIA, and where cards with other amounts of memory have it too, it stands for the first of them.

    Raises BadInput, which lists the known keys.
    """
    wanted = _comparable(name)
    for known in _ALL:
        if wanted in (_comparable(known.key), _comparable(known.name)):
            return known
    hint = nearest(wanted.removeprefix("geforce-"), CARDS)
    raise BadInput(f"there is no GPU model {name!r}{hint}; known models are {', '.join(sorted(CARDS))}")


def _comparable(name: str) -> str:
    return name.casefold().replace(" ", "-").removeprefix("nvidia-")
