"""The cards with MIG, with every profile and placement.

Names, MiB and places are as NVIDIA's driver reports them (the MIG user guide; go-nvml's mocks for the A100 and A30;
nvidia-smi with driver 560 on an H100 NVL and on a GH200 of 96 GB),
device ids as in mig-parted's standard configuration. Where mocks and hardware disagree, hardware is here: a 3g takes
four memory slices, a 7g all eight. Multiprocessors and engines are left out where no source tells them.
"""

from msgspec import Struct

from lamina.core.mig import Engines, MigCard, MigProfile

_SEVEN_SLICES = (
    # compute, memory slices, places, suffix, nvidia-smi's id, NVML's index, media engines
    (1, 1, (0, 1, 2, 3, 4, 5, 6), "", 19, 0, 0),
    (1, 1, (0, 1, 2, 3, 4, 5, 6), "+me", 20, 7, 1),
    (1, 2, (0, 2, 4, 6), "", 15, 9, 0),
    (2, 2, (0, 2, 4), "", 14, 1, 0),
    (3, 4, (0, 4), "", 9, 2, 0),
    (4, 4, (0,), "", 5, 3, 0),
    (7, 8, (0,), "", 0, 4, 0),
)
_A30_SHAPES = (
    (1, 1, (0, 1, 2, 3), "", 14, 0, 0),
    (1, 1, (0, 1, 2, 3), "+me", 21, 7, 1),
    (2, 2, (0, 2), "", 5, 1, 0),
    (2, 2, (0, 2), "+me", 6, 8, 1),
    (4, 4, (0,), "", 0, 3, 0),
)
_RTX_SHAPES = (
    (1, 1, (0, 1, 2, 3), "", 14, 0, 1),
    (1, 1, (0, 1, 2, 3), "+gfx", 47, 10, 1),
    (1, 1, (0, 1, 2, 3), "+me.all", 65, 15, 4),
    (1, 1, (0, 1, 2, 3), "-me", 67, 13, 0),
    (2, 2, (0, 2), "", 5, 1, 2),
    (2, 2, (0, 2), "+gfx", 35, 11, 2),
    (2, 2, (0, 2), "+me.all", 64, 16, 4),
    (2, 2, (0, 2), "-me", 66, 14, 0),
    (4, 4, (0,), "", 0, 3, 4),
    (4, 4, (0,), "+gfx", 32, 12, 4),
)

_AMPERE = (
    Engines(1), Engines(1, 1, 0, 1, 1), Engines(1, 1), Engines(2, 1), Engines(3, 2), Engines(4, 2),
    Engines(7, 5, 0, 1, 1),
)  # fmt: skip
_HOPPER = (
    Engines(1, 1, 0, 1), Engines(1, 1, 0, 1, 1), Engines(1, 1, 0, 1), Engines(2, 2, 0, 2), Engines(3, 3, 0, 3),
    Engines(4, 4, 0, 4), Engines(8, 7, 0, 7, 1),
)  # fmt: skip


class _Chip(Struct, frozen=True):
    """What cards with the same chip have in common; `sms` and `engines` are in the order of the shapes."""

    shapes: tuple[tuple[int, int, tuple[int, ...], str, int, int, int], ...] = _SEVEN_SLICES
    sms: tuple[int, ...] = ()
    engines: tuple[Engines, ...] = ()
    media: int = 1
    architecture: str = "Blackwell"
    compute: tuple[int, int] = (10, 0)
    """The compute capability."""


_GB200 = _Chip()
_B300 = _Chip(compute=(10, 3))
"""Of both, no source tells the multiprocessors and engines."""
_A100 = _Chip(sms=(14, 14, 14, 28, 42, 56, 98), engines=_AMPERE, architecture="Ampere", compute=(8, 0))
_H100 = _Chip(sms=(16, 16, 26, 32, 60, 64, 132), engines=_HOPPER, architecture="Hopper", compute=(9, 0))
_B200 = _Chip(sms=(18, 18, 18, 36, 54, 72, 126), engines=_HOPPER)
_A30 = _Chip(
    architecture="Ampere",
    compute=(8, 0),
    shapes=_A30_SHAPES,
    sms=(14, 14, 28, 28, 56),
    engines=(Engines(1), Engines(1, 1, 0, 1, 1), Engines(2, 2), Engines(2, 2, 0, 1, 1), Engines(4, 4, 0, 1, 1)),
)
_RTX = _Chip(shapes=_RTX_SHAPES, media=4, compute=(12, 0))


def _card(
    model: str, devices: tuple[int, ...], gigabytes: tuple[int, ...], chip: _Chip, *, mib: tuple[int, ...] = ()
) -> MigCard:
    """`gigabytes` and `mib` go by the kinds of memory and compute, in the order of the chip's shapes."""
    sizes = list(dict.fromkeys((slices, size) for slices, size, *_ in chip.shapes))
    profiles = []
    for number, (slices, size, starts, suffix, ident, index, claims) in enumerate(chip.shapes):
        kind = sizes.index((slices, size))
        profiles.append(
            MigProfile(
                name=f"{slices}g.{gigabytes[kind]}gb{suffix}",
                slices=slices,
                size=size,
                starts=starts,
                memory_mib=mib[kind] if mib else None,
                sms=chip.sms[number] if chip.sms else None,
                id=ident,
                index=index,
                media=claims,
                engines=chip.engines[number] if chip.engines else Engines(),
            )
        )
    slices = max(size for _, size in sizes)
    return MigCard(model, slices, tuple(profiles), devices, chip.media, chip.architecture, chip.compute)


_ALL = (
    _card(
        "A100-40GB", (0x20B0, 0x20B1, 0x20F1, 0x20F6), (5, 10, 10, 20, 20, 40), _A100,
        mib=(4864, 9856, 9856, 19_968, 19_968, 40_192),
    ),
    _card(
        "A100-80GB", (0x20B2, 0x20B5, 0x20F3, 0x20F5), (10, 20, 20, 40, 40, 80), _A100,
        mib=(9856, 19_968, 19_968, 40_192, 40_192, 80_384),
    ),
    _card("A30-24GB", (0x20B7,), (6, 12, 24), _A30, mib=(5836, 11_672, 23_344)),
    _card(
        "H100-80GB", (0x2330, 0x2331, 0x2322, 0x2324), (10, 20, 20, 40, 40, 80), _H100,
        mib=(9984, 20_096, 20_096, 40_448, 40_448, 81_152),
    ),
    _card(
        "H100-94GB", (0x2321, 0x233A), (12, 24, 24, 47, 47, 94), _H100,
        mib=(11_008, 22_144, 22_144, 47_488, 47_488, 95_360),
    ),
    _card(
        "H100-96GB", (0x2342, 0x233D, 0x20B6, 0x2329), (12, 24, 24, 48, 48, 96), _H100,
        mib=(11_264, 23_552, 23_552, 47_616, 47_616, 95_232),
    ),
    _card(
        "H200-141GB", (0x2335, 0x233B), (18, 35, 35, 71, 71, 141), _H100,
        mib=(18_432, 35_840, 35_840, 72_704, 72_704, 144_384),
    ),
    _card("GH200-144GB", (0x2348,), (18, 36, 36, 72, 72, 144), _H100),
    _card(
        "B200-180GB", (0x2901,), (23, 45, 45, 90, 90, 180), _B200,
        mib=(23_552, 46_080, 46_080, 92_160, 92_160, 184_320),
    ),
    _card("B300-269GB", (0x3182,), (34, 67, 67, 135, 135, 269), _B300),
    _card("GB200-186GB", (0x2941,), (23, 47, 47, 93, 93, 186), _GB200),
    _card("GB300-278GB", (0x31C2,), (35, 70, 70, 139, 139, 278), _B300),
    _card("RTX-PRO-6000-96GB", (0x2BB5, 0x2BB1, 0x2BB4), (24, 48, 96), _RTX),
)  # fmt: skip

MIG_CARDS = {card.model: card for card in _ALL}
"""Cards by model and memory."""


def mig_card(pci_device: int) -> MigCard | None:
    """The card of a PCI device id, alone or with the vendor's in its lower half as NVML gives it."""
    device = pci_device >> 16 or pci_device
    return next((card for card in _ALL if device in card.devices), None)
