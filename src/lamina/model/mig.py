"""MIG: the profiles of each card and where their instances may lie.

A card's memory is cut into slices, 8 on most and 4 on an A30, and an instance takes a run of them that begins at one of
a few places. Compute slices need no account of their own: the places allow no layout that has too few. Placements are
as NVIDIA's driver lists them (go-nvml's mocks for the A100 and A30; the MIG user guide), names and MiB as it reports.
"""

from msgspec import Struct


class MigProfile(Struct, frozen=True):
    """One kind of instance. `starts` are the memory slices at which it may begin, `size` how many it takes.

    `slices` is its compute, in slices. `memory_mib` is None where no source tells it.
    """

    name: str
    slices: int
    size: int
    starts: tuple[int, ...]
    memory_mib: int | None = None

    @property
    def masks(self) -> tuple[int, ...]:
        """The slices it takes at each of its places, as bits."""
        return tuple(((1 << self.size) - 1) << start for start in self.starts)


class MigCard(Struct, frozen=True):
    """A card that can be cut, its profiles from the smallest."""

    model: str
    slices: int
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile:
        """Raises KeyError with the names there are."""
        for profile in self.profiles:
            if profile.name == name:
                return profile
        raise KeyError(f"{self.model} has no MIG profile {name}; it has {', '.join(p.name for p in self.profiles)}")


_SEVEN = (
    (1, 1, (0, 1, 2, 3, 4, 5, 6)),
    (1, 2, (0, 2, 4, 6)),
    (2, 2, (0, 2, 4)),
    (3, 4, (0, 4)),
    (4, 4, (0,)),
    (7, 8, (0,)),
)
"""Compute slices, memory slices and places of cards with seven compute slices, in the order of their profiles."""

_A30 = ((1, 1, (0, 1, 2, 3)), (2, 2, (0, 2)), (4, 4, (0,)))


def _card(
    model: str,
    shapes: tuple[tuple[int, int, tuple[int, ...]], ...],
    gigabytes: tuple[int, ...],
    mib: tuple[int, ...] | None = None,
) -> MigCard:
    profiles = tuple(
        MigProfile(f"{slices}g.{gigabytes[i]}gb", slices, size, starts, mib[i] if mib else None)
        for i, (slices, size, starts) in enumerate(shapes)
    )
    return MigCard(model, max(size for _, size, _ in shapes), profiles)


MIG_CARDS = {
    card.model: card
    for card in (
        _card("A100-40GB", _SEVEN, (5, 10, 10, 20, 20, 40), (4864, 9856, 9856, 19_968, 19_968, 40_192)),
        _card("A100-80GB", _SEVEN, (10, 20, 20, 40, 40, 80), (9856, 19_968, 19_968, 40_192, 40_192, 80_384)),
        _card("A30-24GB", _A30, (6, 12, 24), (5836, 11_672, 23_344)),
        _card("H100-80GB", _SEVEN, (10, 20, 20, 40, 40, 80)),
        _card("H100-94GB", _SEVEN, (12, 24, 24, 47, 47, 94)),
        _card("H100-96GB", _SEVEN, (12, 24, 24, 48, 48, 96)),
        _card("H200-141GB", _SEVEN, (18, 35, 35, 71, 71, 141)),
        _card("B200-180GB", _SEVEN, (23, 45, 45, 90, 90, 180)),
    )
}
"""Cards by model and memory."""
