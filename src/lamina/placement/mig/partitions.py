"""What one kind of GPU can be partitioned into for shares, and where on a GPU one more instance may go.

A request gets the smallest profile that holds its memory and its compute, at the place after which most of the card
can still be used (`mig_layouts`). An existing idle instance comes first: it costs nothing.
"""

from functools import cache, lru_cache

from lamina.core.gpus import ExistingMigInstance
from lamina.core.mig import MigCard, MigProfile, Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_rules import MigRule, rule_for
from lamina.core.requests import ContainerRequest
from lamina.errors import BadInput
from lamina.placement.mig.layouts import Layouts


class PartitionScheme:
    """How a card may be partitioned under a rule. Profiles with special engines are used only where a rule names them.

    `profiles` stand from the smallest; sets of them are bits in this order.
    """

    def __init__(self, card: MigCard, rule: MigRule | None) -> None:
        self.card = card
        self._layouts = [dict(layout) for layout in rule.layouts] if rule else []
        able = [p for p in card.profiles if (p.name in rule.profiles if rule else p.base)]
        self.profiles = tuple(sorted(able, key=lambda p: (p.holds_mib, p.slices, not p.base)))
        mix = {p.name: max((each.get(p.name, 0) for each in self._layouts), default=1) for p in self.profiles}
        self._waste: list[float] = Layouts(card, mix).waste.tolist()

    def holding(self, container: ContainerRequest) -> int:
        """The profiles that hold what the container asks, and that quotas allow it. Percents of memory are parts of
        the card's slices; who asks the GPU alone gets all of them."""
        holding, room = self.holding_beyond_quotas(container), container.room
        if room is None:
            return holding
        return sum(
            1 << place
            for place, profile in enumerate(self.profiles)
            if holding >> place & 1 and room.takes(profile.holds_mib, self.card.cores(profile))
        )

    def holding_beyond_quotas(self, container: ContainerRequest) -> int:
        """The same whatever quotas allow."""
        return sum(1 << place for place, profile in enumerate(self.profiles) if self._holds(profile, container))

    def smallest(self, holding: int) -> MigProfile:
        """The first of a set that is not empty."""
        return self.profiles[(holding & -holding).bit_length() - 1]

    def allows(self, profile: MigProfile, present: tuple[Placed, ...]) -> bool:
        """Whether some layout of the rule has one more instance of the profile in addition to these."""
        counts = {profile.name: 1}
        for each in present:
            counts[each.profile] = counts.get(each.profile, 0) + 1
        layouts = self._layouts
        return not layouts or any(all(layout.get(n, 0) >= k for n, k in counts.items()) for layout in layouts)

    def waste(self, layout: tuple[Placed, ...], profile: MigProfile, start: int) -> float:
        """What could not be used any more of the card with one more instance."""
        slices = ((1 << profile.size) - 1) << start
        for each in layout:
            slices |= ((1 << self.card.profile(each.profile).size) - 1) << each.start
        return self._waste[slices]

    def _holds(self, profile: MigProfile, container: ContainerRequest) -> bool:
        if container.exclusive and profile.size < self.card.slices:
            return False
        if container.cores > self.card.cores(profile):
            return False
        if container.memory_mib is not None:
            return container.memory_mib <= profile.holds_mib
        return (container.memory_percent or 0) * self.card.slices <= profile.size * 100


class Partitions:
    """The partitions of one GPU: `held` are instances that are granted, `there` those on the GPU now.

    What was made for a grant that has ended is not in the way; what others made stays. `open` are the profiles of
    which one more instance has a place.
    """

    def __init__(
        self, scheme: PartitionScheme, held: tuple[Placed, ...], there: tuple[ExistingMigInstance, ...]
    ) -> None:
        self.scheme = scheme
        spare = [each for each in there if (each.profile, each.start) not in held]
        self._made = {Placed(each.profile, each.start) for each in spare if each.made and not each.used}
        self._free = {Placed(each.profile, each.start) for each in spare if not each.made and not each.used}
        self._taken = held + tuple(Placed(each.profile, each.start) for each in spare if each.used)
        self._held = held
        self.open = sum(1 << place for place, profile in enumerate(scheme.profiles) if self.places(profile))

    def places(self, profile: MigProfile, more: tuple[Placed, ...] = ()) -> list[Placed]:
        """Where an instance of the profile may go in addition to `more`, the best place first."""
        if not self.scheme.allows(profile, self._held + more):
            return []
        able = []
        for start in profile.starts:
            wanted = Placed(profile.name, start)
            others = (*self._taken, *more, *(self._free - {wanted, *more}))
            if wanted not in more and start in self.scheme.card.places(profile, others):
                able.append((wanted not in self._free, self.scheme.waste(others, profile, start), wanted))
        return [wanted for *_, wanted in sorted(able, key=lambda e: (*e[:2], e[2] not in self._made, -e[2].start))]

    def first(self, holding: int) -> Placed | None:
        """The best place of the smallest of these profiles that has one."""
        able = holding & self.open
        return self.places(self.scheme.smallest(able))[0] if able else None

    def conflict(self, instances: tuple[Placed, ...]) -> str:
        """Why exactly these instances cannot be on the GPU next to those that are held or stay, or nothing."""
        wanted = set(instances)
        if granted := sorted(wanted & set(self._taken)):
            return f"{granted[0].profile} at slice {granted[0].start} is in use already"
        try:
            self.scheme.card.check((*sorted({*self._taken, *self._free} - wanted), *sorted(wanted)))
        except BadInput as problem:
            return str(problem)
        return ""


@lru_cache(1 << 12)
def scheme_of(card: str, model: str, rules: tuple[MigRule, ...] = ()) -> PartitionScheme | None:
    """How GPUs of the model, which are the card `card` of MIG_CARDS, may be partitioned; None for an unknown card.

    The same rule gives the same object."""
    known = MIG_CARDS.get(card)
    return None if known is None else _scheme(card, rule_for(rules, model, known))


@cache
def _scheme(card: str, rule: MigRule | None) -> PartitionScheme:
    return PartitionScheme(MIG_CARDS[card], rule)


@lru_cache(1 << 14)
def partitions_of(
    scheme: PartitionScheme, held: tuple[Placed, ...], there: tuple[ExistingMigInstance, ...]
) -> Partitions:
    """Cached: many GPUs are in the same state."""
    return Partitions(scheme, held, there)
