"""The cards of workstations and of people's own machines.

Memory is what nvidia-smi shows as the total with a current driver, in MiB. Multiprocessors, boost clocks, bus widths
and power limits are from NVIDIA's data sheets and architecture papers; the clock of the memory is half of its data
rate. PCI ids are from the public PCI id list. Cards of one name differ in memory, and the usual one is first. The cost
of a context is of the size that people report.

None of them has an NVLink without a bridge, and only the RTX PRO 6000 has MIG: all editions, with driver 575.51.03 and
newer (NVIDIA's MIG user guide).
"""

from typing import NamedTuple

from lamina.core.card_model import Architecture, Brand, Card


class _Chip(NamedTuple):
    """What cards of one architecture have in common."""

    architecture: Architecture
    compute: tuple[int, int]
    pcie_generation: int
    context_mib: int


_AMPERE = _Chip(Architecture.AMPERE, (8, 6), 4, 258)
_ADA = _Chip(Architecture.ADA, (8, 9), 4, 300)
_BLACKWELL = _Chip(Architecture.BLACKWELL, (12, 0), 5, 400)
_GEFORCE = (
    # key, chip, MiB, SMs, PCI device, watts, clock, memory clock, bits, L2 in KiB
    ("RTX-3060", _AMPERE, 12288, 28, 0x2504, 170, 1777, 7501, 192, 3072),
    ("RTX-3060-8GB", _AMPERE, 8192, 28, 0x24C7, 170, 1777, 7501, 128, 2048),
    ("RTX-3060-Ti", _AMPERE, 8192, 38, 0x2486, 200, 1665, 7001, 256, 4096),
    ("RTX-3070", _AMPERE, 8192, 46, 0x2484, 220, 1725, 7001, 256, 4096),
    ("RTX-3070-Ti", _AMPERE, 8192, 48, 0x2482, 290, 1770, 9501, 256, 4096),
    ("RTX-3080", _AMPERE, 10240, 68, 0x2206, 320, 1710, 9501, 320, 5120),
    ("RTX-3080-12GB", _AMPERE, 12288, 70, 0x220A, 350, 1710, 9501, 384, 6144),
    ("RTX-3080-Ti", _AMPERE, 12288, 80, 0x2208, 350, 1665, 9501, 384, 6144),
    ("RTX-3090", _AMPERE, 24576, 82, 0x2204, 350, 1695, 9751, 384, 6144),
    ("RTX-3090-Ti", _AMPERE, 24564, 84, 0x2203, 450, 1860, 10501, 384, 6144),
    ("RTX-4060", _ADA, 8188, 24, 0x2882, 115, 2460, 8501, 128, 24576),
    ("RTX-4060-Ti", _ADA, 8188, 34, 0x2803, 160, 2535, 9001, 128, 32768),
    ("RTX-4060-Ti-16GB", _ADA, 16380, 34, 0x2805, 165, 2535, 9001, 128, 32768),
    ("RTX-4070", _ADA, 12282, 46, 0x2786, 200, 2475, 10501, 192, 36864),
    ("RTX-4070-SUPER", _ADA, 12282, 56, 0x2783, 220, 2475, 10501, 192, 49152),
    ("RTX-4070-Ti", _ADA, 12282, 60, 0x2782, 285, 2610, 10501, 192, 49152),
    ("RTX-4070-Ti-SUPER", _ADA, 16376, 66, 0x2705, 285, 2610, 10501, 256, 49152),
    ("RTX-4080", _ADA, 16376, 76, 0x2704, 320, 2505, 11201, 256, 65536),
    ("RTX-4080-SUPER", _ADA, 16376, 80, 0x2702, 320, 2550, 11501, 256, 65536),
    ("RTX-4090", _ADA, 24564, 128, 0x2684, 450, 2520, 10501, 384, 73728),
    ("RTX-5060", _BLACKWELL, 8151, 30, 0x2D05, 145, 2497, 14001, 128, 32768),
    ("RTX-5060-Ti", _BLACKWELL, 16311, 36, 0x2D04, 180, 2572, 14001, 128, 32768),
    ("RTX-5060-Ti-8GB", _BLACKWELL, 8151, 36, 0x2D04, 180, 2572, 14001, 128, 32768),
    ("RTX-5070", _BLACKWELL, 12227, 48, 0x2F04, 250, 2512, 14001, 192, 49152),
    ("RTX-5070-Ti", _BLACKWELL, 16303, 70, 0x2C05, 300, 2452, 14001, 256, 49152),
    ("RTX-5080", _BLACKWELL, 16303, 84, 0x2C02, 360, 2617, 15001, 256, 65536),
    ("RTX-5090", _BLACKWELL, 32607, 170, 0x2B85, 575, 2407, 14001, 512, 98304),
)
_PROFESSIONAL = (
    ("RTX-A6000", _AMPERE, 49140, 84, 0x2230, 300, 1800, 8001, 384, 6144),
    ("RTX-6000-Ada", _ADA, 49140, 142, 0x26B1, 300, 2505, 10001, 384, 98304),
    ("RTX-PRO-6000-WORKSTATION", _BLACKWELL, 97887, 188, 0x2BB1, 600, 2617, 14001, 512, 131072),
    ("RTX-PRO-6000-MAX-Q", _BLACKWELL, 97887, 188, 0x2BB4, 300, 2280, 14001, 512, 131072),
    ("RTX-PRO-6000-SERVER", _BLACKWELL, 97887, 188, 0x2BB5, 600, 2617, 14001, 512, 131072),
)
_NAMES = {
    "RTX-6000-Ada": "NVIDIA RTX 6000 Ada Generation",
    "RTX-PRO-6000-WORKSTATION": "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
    "RTX-PRO-6000-MAX-Q": "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "RTX-PRO-6000-SERVER": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
}
"""What NVML calls those whose keys say less."""
_Row = tuple[str, _Chip, int, int, int, int, int, int, int, int]


def _card(row: _Row, brand: Brand, *, ecc: bool | None) -> Card:
    key, chip, memory, sms, device, watts, clock, memory_clock, bits, l2_kib = row
    words = key.replace("-", " ").removesuffix(" 8GB").removesuffix(" 12GB").removesuffix(" 16GB")
    return Card(
        key=key,
        name=_NAMES.get(key) or f"NVIDIA {'GeForce ' if brand is Brand.GEFORCE else ''}{words}",
        memory_mib=memory,
        sms=sms,
        cores_per_sm=128,
        compute=chip.compute,
        architecture=chip.architecture,
        brand=brand,
        power_limit=watts,
        power_idle=watts // 15,
        pci_device=device,
        context_bytes=chip.context_mib << 20,
        mig_capable="PRO-6000" in key,
        ecc=ecc,
        threads_per_sm=1536,
        sm_clock=clock,
        memory_clock=memory_clock,
        bus_width=bits,
        l2_kib=l2_kib,
        shared_per_sm_kib=100,
        pcie_generation=chip.pcie_generation,
    )


WORKSTATION_CARDS = (
    *(_card(row, Brand.GEFORCE, ecc=None) for row in _GEFORCE),
    *(_card(row, Brand.NVIDIA_RTX, ecc=row[0].endswith("SERVER")) for row in _PROFESSIONAL),
)
"""GeForce cards have memory without ECC; those for work are shipped with it turned off, except for the server's."""
