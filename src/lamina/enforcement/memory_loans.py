"""Who may hold how much memory of a GPU now, where containers may hold more than they are guaranteed. Pure.

What is not held is lent to all that may borrow. When the containers together hold more than the GPU has, the youngest
borrowers return memory first: they get nothing more, and keep what they have to return on the host. Where the
guaranteed amounts fit the GPU, what is returned is always enough for them.

Containers write themselves how much they hold. What a container writes counts in full against itself, so that it can
only give back more by a lie, and against others only as far as the driver confirms it: they return memory for what its
processes are listed with. Managed memory, which some drivers list for the whole GPU only, is not lent again, and whose
pages stay on the GPU is then the driver's decision. A figure that is too low makes others borrow too much. Borrowed
memory is managed memory, which the driver moves out for every request within a guarantee, so that costs borrowers
speed and no other container its guarantee.

Example: a GPU has 16 GiB. A and B are guaranteed 8 GiB each, and A may hold 16. A holds 14, B none: A may hold 16 now.
B allocates 6: they hold 20 together, 4 too much. A may hold 10, which is less than it does, so it gets nothing more and
keeps 4 GiB on the host. B frees 5: 1 GiB of the GPU is free. After a second A uses all of its memory on the GPU again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

CALM_NS = 1_000_000_000
"""Memory comes back from the host when there has been room for it this long, to avoid thrashing."""


class MemoryHolder(Struct, frozen=True, kw_only=True):
    """A container on the GPU, in bytes. It borrows what it holds beyond `guaranteed`. `made_at` is its age.

    `held` is its own word. The driver lists `listed` of it with its processes, and may have `unlisted` more on the GPU
    without saying whose that is. Where `listed` is None, the driver does not say, and others return memory for its word
    only if it is `trusted`.
    """

    name: str
    guaranteed: int
    limit: int
    held: int
    made_at: int = 0
    listed: int | None = None
    unlisted: int = 0
    trusted: bool = True

    @property
    def counted(self) -> int:
        """What it holds by its own word."""
        return min(self.held, self.limit)

    @property
    def borrowed(self) -> int:
        """How much it holds beyond what it is guaranteed."""
        return max(0, self.counted - self.guaranteed)

    @property
    def believed(self) -> int:
        """What certainly is its own, or has to be taken for that, so that it is not lent twice."""
        return self.counted if self.listed is None else min(self.counted, self.listed)

    @property
    def due(self) -> int:
        """Of this, what borrowers have to return memory for."""
        return self.believed if self.trusted or self.listed is not None else 0

    @property
    def lends(self) -> bool:
        """Whether it holds borrowed memory by more than its word."""
        return self.borrowed > 0 and self.due + self.unlisted > 0


class Aged(Protocol):
    """A container whose files were made at some time (ns)."""

    @property
    def name(self) -> str: ...

    @property
    def made_at(self) -> int: ...


def age(container: Aged) -> tuple[int, str]:
    """The order of containers, the youngest last: it returns memory first."""
    return container.made_at, container.name


class Lending(Struct, frozen=True, kw_only=True):
    """What a container may hold, and how much of it it keeps on the host, in bytes."""

    allowed: int
    host: int = 0
    neighbors_borrow: bool = False
    """Whether others hold borrowed memory, so that a request which does not fit will fit soon."""


class Hosted(Struct, frozen=True, kw_only=True):
    """What a container keeps on the host, and since when that is more than it has to (ns); 0: it is not."""

    bytes: int
    ample_since: int = 0


class Lender:
    """Decides for the containers of one GPU; remembers what they keep on the host, and for how long."""

    def __init__(self) -> None:
        self._hosted: dict[str, Hosted] = {}

    def tick(
        self, now: int, capacity: int, holders: Sequence[MemoryHolder], unlisted: int | None = None
    ) -> dict[str, Lending]:
        """The decisions from `now` (ns) on. `capacity` is the GPU's memory; 0, where it is not known, lends nothing.

        `unlisted` is the memory in use that the driver lists with no process; None where it does not say that.
        """
        hosted = {each.name: self._hosted.get(each.name, Hosted(bytes=0)) for each in holders}
        decisions, self._hosted = decide(now, capacity, holders, hosted, unlisted)
        return decisions

    def hosted(self, name: str) -> int:
        """What a container has to keep on the host, in bytes, as was decided last."""
        return self._hosted.get(name, Hosted(bytes=0)).bytes


def decide(
    now: int,
    capacity: int,
    holders: Sequence[MemoryHolder],
    hosted: Mapping[str, Hosted],
    unlisted: int | None = None,
) -> tuple[dict[str, Lending], dict[str, Hosted]]:
    """What each may hold, and what each keeps on the host. `hosted` is what each kept there before."""
    others = _others(holders, unlisted)
    returned = {
        each.name: min(each.borrowed, max(0, each.counted + others[each.name].due - capacity)) for each in holders
    }
    kept = {each.name: _kept(hosted[each.name], returned[each.name], now) for each in holders}
    lending = sum(each.lends for each in holders)
    decisions = {
        each.name: Lending(
            allowed=_allowed(each, capacity - each.counted - others[each.name].held, returned[each.name])
            if capacity
            else each.guaranteed,
            host=kept[each.name].bytes,
            neighbors_borrow=lending > each.lends,
        )
        for each in holders
    }
    return decisions, kept


class _Others(NamedTuple):
    """What all others hold of a GPU, and what a container has to return its borrowed memory for: of younger ones only
    what they are guaranteed, because these return theirs first."""

    held: int
    due: int


def _others(holders: Sequence[MemoryHolder], unlisted: int | None) -> dict[str, _Others]:
    """By container. Memory that the driver lists with no process is taken for its own, as far as its word goes: it
    returns none for that of others, and what is left of it is not lent to it."""
    held, loose = sum(each.believed for each in holders), sum(each.unlisted for each in holders)
    due = sum(min(each.due, each.guaranteed) for each in holders)
    found, older = {}, 0
    for each in sorted(holders, key=age):
        others_loose = loose - each.unlisted
        if unlisted is not None:
            others_loose = min(others_loose, max(0, unlisted - each.unlisted))
        own = min(each.due, each.guaranteed)
        found[each.name] = _Others(held - each.believed + others_loose, due - own + older)
        older += each.due - own
    return found


def _allowed(holder: MemoryHolder, room: int, returned: int) -> int:
    return min(holder.limit, max(holder.guaranteed, holder.counted + max(0, room) - returned))


def _kept(before: Hosted, wanted: int, now: int) -> Hosted:
    """More at once, less when it has been too much for a while."""
    if wanted >= before.bytes:
        return Hosted(bytes=wanted)
    since = before.ample_since or now
    return Hosted(bytes=wanted) if now - since >= CALM_NS else Hosted(bytes=before.bytes, ample_since=since)
