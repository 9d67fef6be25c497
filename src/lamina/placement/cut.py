"""What one kind of GPU can be cut into for shares, and where on a GPU one more instance may go.

A request gets the smallest profile that holds its memory and its compute, at the place after which most of the card
can still be used (`mig_layouts`). What is there already and nobody uses comes first: it costs nothing.
"""

from functools import cache, lru_cache

from lamina.model.gpus import InstanceThere
from lamina.model.mig import MigCard, MigProfile, Placed
from lamina.model.mig_cards import MIG_CARDS
from lamina.model.mig_rules import MigRule, rule_for
from lamina.model.requests import ContainerRequest
from lamina.placement.mig_layouts import Layouts


class Cut:
    """A card under a rule. Profiles that claim special engines are used only where the rule names them.

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
        """The profiles that hold what the container asks. Percents of memory are parts of the card's slices; who asks
        the GPU alone gets all of them."""
        return sum(1 << place for place, profile in enumerate(self.profiles) if self._holds(profile, container))

    def smallest(self, holding: int) -> MigProfile:
        """The first of a set that is not empty."""
        return self.profiles[(holding & -holding).bit_length() - 1]

    def allows(self, profile: MigProfile, beside: tuple[Placed, ...]) -> bool:
        """Whether some layout of the rule has one more instance of the profile beside these."""
        counts = {profile.name: 1}
        for each in beside:
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


class Room:
    """One GPU that is cut, or may be: `held` are instances that are granted, `there` those on the GPU now.

    What was made for a grant that has ended is not in the way; what others made stays. `open` are the profiles of
    which one more instance has a place.
    """

    def __init__(self, cut: Cut, held: tuple[Placed, ...], there: tuple[InstanceThere, ...]) -> None:
        self.cut = cut
        spare = [each for each in there if (each.profile, each.start) not in held]
        self._made = {Placed(each.profile, each.start) for each in spare if each.made and not each.used}
        self._free = {Placed(each.profile, each.start) for each in spare if not each.made and not each.used}
        self._taken = held + tuple(Placed(each.profile, each.start) for each in spare if each.used)
        self._held = held
        self.open = sum(1 << place for place, profile in enumerate(cut.profiles) if self.places(profile))

    def places(self, profile: MigProfile, more: tuple[Placed, ...] = ()) -> list[Placed]:
        """Where an instance of the profile may go beside `more`, the best place first."""
        if not self.cut.allows(profile, self._held + more):
            return []
        able = []
        for start in profile.starts:
            wanted = Placed(profile.name, start)
            others = (*self._taken, *more, *(self._free - {wanted, *more}))
            if wanted not in more and start in self.cut.card.places(profile, others):
                able.append((wanted not in self._free, self.cut.waste(others, profile, start), wanted))
        return [wanted for *_, wanted in sorted(able, key=lambda e: (*e[:2], e[2] not in self._made, -e[2].start))]

    def first(self, holding: int) -> Placed | None:
        """The best place of the smallest of these profiles that has one."""
        able = holding & self.open
        return self.places(self.cut.smallest(able))[0] if able else None


@lru_cache(1 << 12)
def cut_of(card: str, model: str, rules: tuple[MigRule, ...] = ()) -> Cut | None:
    """What GPUs of the model, which are the card `card` of MIG_CARDS, can be cut into; None for an unknown card.

    The same rule gives the same object."""
    known = MIG_CARDS.get(card)
    return None if known is None else _cut(card, rule_for(rules, model, known))


@cache
def _cut(card: str, rule: MigRule | None) -> Cut:
    return Cut(MIG_CARDS[card], rule)


@lru_cache(1 << 14)
def room_of(cut: Cut, held: tuple[Placed, ...], there: tuple[InstanceThere, ...]) -> Room:
    """The room of GPUs that are in the same state: many are."""
    return Room(cut, held, there)
