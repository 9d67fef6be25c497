"""Which of a card's MIG profiles and layouts may be used: the cluster's choice among what the card can do."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from lamina.core.mig import MigCard
from lamina.core.mig_cards import MIG_CARDS
from lamina.errors import BadInput

_SAME = {"H20": "H100-96GB"}
"""Cards that are cut as another one is."""


class MigRule(Struct, frozen=True, kw_only=True):
    """For GPUs whose model contains one of `models`. `layouts` are numbers of instances by profile: what is on a GPU
    has to be a part of one of them; without any, every layout of the `profiles` will do."""

    models: tuple[str, ...]
    profiles: tuple[str, ...]
    layouts: tuple[tuple[tuple[str, int], ...], ...] = ()

    def concerns(self, model: str, card: MigCard) -> bool:
        """Whether the rule is about GPUs of this model: of cards with the same name, for the one it was written for."""
        return any(part in model for part in self.models) and set(self.profiles) <= {p.name for p in card.profiles}


def rule_for(rules: Iterable[MigRule], model: str, card: MigCard) -> MigRule | None:
    """The first rule that concerns the GPU; without one all of the card's layouts may be used."""
    return next((rule for rule in rules if rule.concerns(model, card)), None)


def check_rule(rule: MigRule) -> None:
    """Raises BadInput, with what is possible instead, for a model that cannot be cut, or not so."""
    for model in rule.models:
        cards = cards_named(model)
        if not cards:
            raise BadInput(f"{model!r} names no card that can be cut; known are {', '.join(MIG_CARDS)}")
        refusals = [text for card in cards if (text := _refusal(rule, card))]
        if len(refusals) == len(cards):
            raise BadInput(refusals[0])


def cards_named(model: str) -> tuple[MigCard, ...]:
    """The cards that a name such as A100-SXM4-40GB, A100-PCIE or H20 may mean."""
    words = set(re.split(r"[^A-Z0-9]+", model.upper()))
    same = next((MIG_CARDS[key] for name, key in _SAME.items() if name in words), None)
    if same is not None:
        return (same,)
    family = [(set(name.split("-")[:-1]), name.split("-")[-1], card) for name, card in MIG_CARDS.items()]
    found = [(memory, card) for kind, memory, card in family if kind <= words]
    return tuple(card for memory, card in found if memory in words) or tuple(card for _, card in found)


def _refusal(rule: MigRule, card: MigCard) -> str:
    """Why the card has not all that the rule names, or nothing."""
    wanted: tuple[Mapping[str, int], ...] = tuple(dict(layout) for layout in rule.layouts) or tuple(
        {name: 1} for name in rule.profiles
    )
    for layout in wanted:
        try:
            card.arrange(layout)
        except BadInput as problem:
            return str(problem)
    return ""
