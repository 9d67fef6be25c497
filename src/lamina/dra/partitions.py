"""The MIG devices that a GPU may be partitioned into on demand, and the counters that keep them apart.

A GPU has a counter for each memory slice, and one for its media engines where profiles claim some. A MIG device takes
the slices of its place, and the GPU as a whole takes all counters. So the scheduler never allocates two devices that
cannot exist at the same time. Compute slices need no counters, as `lamina.core.mig` says.
"""

from collections.abc import Iterator, Set
from typing import Any

from msgspec import Struct

from lamina.core.mig import MigCard, MigProfile, Placed

_SLICE = "memory-slice-"
_MEDIA = "media-engines"


class PartitionOptions(Struct, frozen=True, kw_only=True):
    """What may be made of a GPU: instances of `profiles`, next to those that others made and that stay.

    `kept` are these, and `used` those of them that something else uses.
    """

    card: MigCard
    profiles: tuple[MigProfile, ...]
    kept: tuple[Placed, ...] = ()
    used: Set[Placed] = frozenset()

    def places(self) -> Iterator[tuple[MigProfile, int]]:
        """Where an instance may be, or is already; the smallest profiles first.

        Each begins with its last place, so that the first places, the only ones of large profiles, stay free longest.
        """
        for profile in sorted(self.profiles, key=lambda each: (each.size, each.slices, not each.base, each.id)):
            free = {*self.card.places(profile, self.kept)}
            unused = {each.start for each in self.kept if each.profile == profile.name and each not in self.used}
            yield from ((profile, start) for start in sorted(free | unused, reverse=True))

    def counters(self) -> dict[str, Any]:
        """All counters of the GPU, as a slice has them."""
        slices = {f"{_SLICE}{number}": 1 for number in range(self.card.slices)}
        return _values(slices | ({_MEDIA: self.card.media} if self._claims_media else {}))

    def consumed(self, profile: MigProfile, start: int) -> dict[str, Any]:
        """The counters that an instance at this place takes."""
        slices = {f"{_SLICE}{number}": 1 for number in range(start, start + profile.size)}
        return _values(slices | ({_MEDIA: profile.media} if profile.media else {}))

    @property
    def _claims_media(self) -> bool:
        return any(profile.media for profile in self.card.profiles)


def _values(counts: dict[str, int]) -> dict[str, Any]:
    return {name: {"value": str(count)} for name, count in counts.items()}
