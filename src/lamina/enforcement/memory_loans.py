"""Who may hold how much memory of a GPU now, where containers may hold more than they are guaranteed. Pure.

What is not held is lent to all that may borrow. When the containers together hold more than the GPU has, the youngest
borrowers return memory first: they get nothing more, and keep what they have to return on the host. Where the
guaranteed amounts fit the GPU, what is returned is always enough for them.

Containers write themselves how much they hold, so a figure counts up to the container's limit. One that is too low
makes others borrow too much. Borrowed memory is managed memory, which the driver moves out for every request within a
guarantee, so that costs borrowers speed and no other container its guarantee.

Example: a GPU has 16 GiB. A and B are guaranteed 8 GiB each, and A may hold 16. A holds 14, B none: A may hold 16 now.
B allocates 6: they hold 20 together, 4 too much. A may hold 10, which is less than it does, so it gets nothing more and
keeps 4 GiB on the host. B frees 5: 1 GiB of the GPU is free. After a second A uses all of its memory on the GPU again.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

CALM_NS = 1_000_000_000
"""Memory comes back from the host when there has been room for it for so long, so that it does not move to and fro."""


class MemoryHolder(Struct, frozen=True, kw_only=True):
    """A container on the GPU, in bytes. It borrows what it holds beyond `guaranteed`. `made_at` is its age."""

    name: str
    guaranteed: int
    limit: int
    held: int
    made_at: int = 0

    @property
    def borrowed(self) -> int:
        """How much it holds beyond what it is guaranteed."""
        return max(0, min(self.held, self.limit) - self.guaranteed)


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

    def tick(self, now: int, capacity: int, holders: Sequence[MemoryHolder]) -> dict[str, Lending]:
        """The decisions from `now` (ns) on. `capacity` is the GPU's memory; 0, where it is not known, lends nothing."""
        hosted = {each.name: self._hosted.get(each.name, Hosted(bytes=0)) for each in holders}
        decisions, self._hosted = decide(now, capacity, holders, hosted)
        return decisions


def decide(
    now: int, capacity: int, holders: Sequence[MemoryHolder], hosted: Mapping[str, Hosted]
) -> tuple[dict[str, Lending], dict[str, Hosted]]:
    """What each may hold, and what each keeps on the host. `hosted` is what each kept there before."""
    room = capacity - sum(min(each.held, each.limit) for each in holders)
    returned = _returned(max(0, -room), holders)
    kept = {each.name: _kept(hosted[each.name], returned[each.name], now) for each in holders}
    borrowing = sum(each.borrowed > 0 for each in holders)
    decisions = {
        each.name: Lending(
            allowed=_allowed(each, max(0, room), returned[each.name]) if capacity else each.guaranteed,
            host=kept[each.name].bytes,
            neighbors_borrow=borrowing > (each.borrowed > 0),
        )
        for each in holders
    }
    return decisions, kept


def _returned(missing: int, holders: Sequence[MemoryHolder]) -> dict[str, int]:
    """What each has to return, so that the others have as much as is missing: the youngest first."""
    returned = {}
    for each in sorted(holders, key=age, reverse=True):
        returned[each.name] = part = min(missing, each.borrowed)
        missing -= part
    return returned


def _allowed(holder: MemoryHolder, room: int, returned: int) -> int:
    held = min(holder.held, holder.limit)
    return min(holder.limit, max(holder.guaranteed, held + room - returned))


def _kept(before: Hosted, wanted: int, now: int) -> Hosted:
    """More at once, less when it has been too much for a while."""
    if wanted >= before.bytes:
        return Hosted(bytes=wanted)
    since = before.ample_since or now
    return Hosted(bytes=wanted) if now - since >= CALM_NS else Hosted(bytes=before.bytes, ample_since=since)
