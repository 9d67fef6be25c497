"""The sums of one account. Each is a part of a GPU multiplied by seconds, except memory in GiB by seconds."""

from collections.abc import Iterable
from functools import reduce

import msgspec
from msgspec import Struct


class Amounts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`compute_used` is always `compute_requested` and what was borrowed, less what was lent, where use is known."""

    memory_requested: float = 0.0
    memory_used: float = 0.0
    memory_borrowed: float = 0.0
    """Used beyond the request."""
    compute_requested: float = 0.0
    compute_used: float = 0.0
    compute_borrowed: float = 0.0
    """Used beyond the request."""
    compute_lent: float = 0.0
    """Requested, and left to others."""
    gib_requested: float = 0.0
    gib_used: float = 0.0
    gib_borrowed: float = 0.0

    def plus(self, other: "Amounts") -> "Amounts":
        return Amounts(**{name: getattr(self, name) + getattr(other, name) for name in FIGURES})


FIGURES = tuple(field.name for field in msgspec.structs.fields(Amounts))
NO_AMOUNTS = Amounts()


def total(amounts: Iterable[Amounts]) -> Amounts:
    """All of them together."""
    return reduce(Amounts.plus, amounts, NO_AMOUNTS)
