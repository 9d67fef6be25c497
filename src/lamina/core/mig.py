"""MIG: what a card can be cut into, and which layouts of instances are possible.

A card's memory is cut into slices, 8 on most and 4 on an A30, and an instance takes a run of them that begins at one of
a few places. Compute slices need no account of their own: the places allow no layout that has too few. Media engines
do, because some profiles claim them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamina.errors import BadInput


class Engines(NamedTuple):
    """How many engines of each kind an instance has."""

    copy: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg: int = 0
    ofa: int = 0


class MigProfile(Struct, frozen=True):
    """One kind of instance. `starts` are the memory slices at which it may begin, `size` how many it takes.

    `slices` is its compute, in slices, and `media` how many of the card's media engines it claims. `id` is the number
    that nvidia-smi shows, `index` the one by which NVML is asked. `memory_mib` and `sms` are None where no source
    tells them.
    """

    name: str
    slices: int
    size: int
    starts: tuple[int, ...]
    memory_mib: int | None = None
    sms: int | None = None
    id: int = 0
    index: int = 0
    media: int = 0
    engines: Engines = Engines()

    @property
    def masks(self) -> tuple[int, ...]:
        """The slices it takes at each of its places, as bits."""
        return tuple(((1 << self.size) - 1) << start for start in self.starts)

    @property
    def holds_mib(self) -> int:
        """The memory that an instance is sure to have. Of the gigabytes of the name no known driver keeps an eighth."""
        if self.memory_mib is not None:
            return self.memory_mib
        return int(self.name.split(".")[1].partition("gb")[0]) * 896

    @property
    def base(self) -> bool:
        """Whether it is a plain one, without a claim to special engines."""
        return "+" not in self.name and "-" not in self.name


class Placed(NamedTuple):
    """An instance of a profile that begins at a memory slice."""

    profile: str
    start: int


class MigCard(Struct, frozen=True):
    """A card that can be cut, its profiles from the smallest. `devices` are PCI device ids, without the vendor."""

    model: str
    slices: int
    profiles: tuple[MigProfile, ...]
    devices: tuple[int, ...] = ()
    media: int = 1
    architecture: str = ""
    compute: tuple[int, int] = (0, 0)
    """The compute capability."""

    @property
    def gigabytes(self) -> int:
        """The memory of the card, as in its name."""
        return int(self.model.rpartition("-")[2].removesuffix("GB"))

    def profile(self, name: str) -> MigProfile:
        """Raises KeyError with the names there are."""
        for profile in self.profiles:
            if profile.name == name:
                return profile
        raise KeyError(f"{self.model} has no MIG profile {name}; it has {', '.join(p.name for p in self.profiles)}")

    def cores(self, profile: MigProfile) -> int:
        """The profile's part of the card's compute, in percent, rounded down."""
        return 100 * profile.slices // max(each.slices for each in self.profiles)

    def most(self, profile: MigProfile) -> int:
        """How many instances of one profile fit an empty card."""
        count = used = 0
        for mask in profile.masks:
            if not mask & used:
                used, count = used | mask, count + 1
        return min(count, self.media // profile.media) if profile.media else count

    def places(self, profile: MigProfile, layout: Iterable[Placed]) -> tuple[int, ...]:
        """Where one more instance may begin next to those of the layout."""
        used = media = 0
        for each in layout:
            kind = self.profile(each.profile)
            used |= ((1 << kind.size) - 1) << each.start
            media += kind.media
        if profile.media + media > self.media:
            return ()
        return tuple(start for start, mask in zip(profile.starts, profile.masks, strict=True) if not mask & used)

    def check(self, layout: Sequence[Placed]) -> None:
        """Raises BadInput, with what is possible instead, unless the layout can be on the card."""
        for number, each in enumerate(layout):
            profile = self._named(each.profile)
            places = self.places(profile, layout[:number])
            if each.start not in places:
                allowed = f"it can begin at {', '.join(map(str, places))}" if places else "no place is left for it"
                raise BadInput(
                    f"{each.profile} cannot begin at {each.start} of {self.model}{_next_to(layout[:number])}; {allowed}"
                )

    def arrange(self, counts: Mapping[str, int], kept: tuple[Placed, ...] = ()) -> tuple[Placed, ...]:
        """Places for so many instances of each profile next to those that are kept, the largest first.

        Raises BadInput where they do not fit.
        """
        profiles = [self._named(name) for name, count in counts.items() for _ in range(count)]
        profiles.sort(key=lambda profile: (-profile.size, -profile.slices, profile.name))
        found = self._arrange(profiles, kept, len(kept))
        if found is None:
            wanted = ", ".join(f"{count} {name}" for name, count in counts.items())
            singly = ", ".join(f"{self.most(profile)} {profile.name}" for profile in self.profiles)
            raise BadInput(
                f"{wanted} do not fit {self.model} together{_next_to(kept)}; of one profile alone fit {singly}"
            )
        return found[len(kept) :]

    def _arrange(
        self, profiles: Sequence[MigProfile], layout: tuple[Placed, ...], first: int
    ) -> tuple[Placed, ...] | None:
        """The layout with the profiles, which begin at number `first` of it; None where they do not fit."""
        if not profiles:
            return layout
        last = layout[-1] if len(layout) > first else None
        for start in reversed(self.places(profiles[0], layout)):
            if last is not None and last.profile == profiles[0].name and start > last.start:
                continue  # the same layout with two equal instances exchanged
            found = self._arrange(profiles[1:], (*layout, Placed(profiles[0].name, start)), first)
            if found is not None:
                return found
        return None

    def balanced(self) -> Mapping[str, int]:
        """NVIDIA's mix of sizes: two of one slice, one of two and, on cards with seven, one of three."""
        counts = {1: 2, 2: 1, 3: 1} if self.slices > 4 else {1: 2, 2: 1}
        best = {}
        for slices, count in counts.items():
            kinds = [profile for profile in self.profiles if profile.base and profile.slices == slices]
            best[max(kinds, key=self.most).name] = count
        return best

    def _named(self, name: str) -> MigProfile:
        try:
            return self.profile(name)
        except KeyError as unknown:
            raise BadInput(str(unknown.args[0])) from None


def _next_to(layout: Sequence[Placed]) -> str:
    """The part of a message that names the instances in the way; empty where there are none."""
    return f" next to {', '.join(f'{other.profile} at {other.start}' for other in layout)}" if layout else ""
