"""Which pods of several nodes to evict so that enough members of a group fit: the members are placed one after
another, each where the fewest and least important pods have to go for it next to the members placed before.

The victims of one node are the cheapest set for all members that are placed there. Members for which no pod has to go
thus cost nothing. The sum over all nodes is not always the least possible.
"""

import heapq
from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamina.placement.eviction.victims import Cost, Victim, cheapest, cost


class GroupMember(Struct, frozen=True):
    """Members of one kind need the same and may go to the same nodes."""

    uid: str
    kind: Hashable
    nodes: Sequence[str]


class NodeRoom(NamedTuple):
    """`fits` says whether the members with these UIDs fit the node together when the pods with those UIDs are gone.

    It must stay true when fewer members come or more pods go.
    """

    candidates: Sequence[Victim]
    fits: Callable[[Sequence[str], frozenset[str]], bool]


class NodeEvictions(NamedTuple):
    """What happens on one node: the members that come, by UID, and the pods that go."""

    members: tuple[str, ...]
    victims: tuple[Victim, ...]


class _Offer(NamedTuple):
    """What one more member costs on a node. The lowest is taken first."""

    cost: Cost
    node: str
    stamp: tuple[int, int]
    """How many members were on the node, and how many pods elsewhere had to go, when it was computed."""
    victims: tuple[Victim, ...]


def cheapest_for_group(
    members: Sequence[GroupMember],
    needed: int,
    rooms: Mapping[str, NodeRoom],
    violations: Callable[[frozenset[str]], int],
    *,
    most_sets: int,
) -> Generator[None, None, dict[str, NodeEvictions] | None]:
    """By node, what to do so that `needed` of the members fit; None if no evictions lead there within the budgets.

    The function yields before each look at a node, which compares at most `most_sets` sets of victims.
    `violations` says how many disruption budgets are violated when the pods with these UIDs go.
    """
    search = _Search(rooms, violations, most_sets)
    placed = 0
    for member in members:
        if placed == needed:
            break
        placed += yield from search.place(member)
    return search.found if placed == needed else None


class _Search:
    def __init__(
        self, rooms: Mapping[str, NodeRoom], violations: Callable[[frozenset[str]], int], most_sets: int
    ) -> None:
        self.found: dict[str, NodeEvictions] = {}
        self._rooms = rooms
        self._violations = violations
        self._most_sets = most_sets
        self._offers: dict[Hashable, list[_Offer]] = {}
        """By kind of members, a heap."""

    def place(self, member: GroupMember) -> Generator[None, None, bool]:
        """Whether the member has a place."""
        if member.kind not in self._offers:
            self._offers[member.kind] = yield from self._first_offers(member)
        offers = self._offers[member.kind]
        while offers:
            first = offers[0]
            if first.stamp == self._stamp(first.node):
                before = self.found.get(first.node, NodeEvictions((), ()))
                self.found[first.node] = NodeEvictions((*before.members, member.uid), first.victims)
                return True
            yield
            renewed = self._offer(member.uid, first.node)
            if renewed is None:
                heapq.heappop(offers)
            else:
                heapq.heapreplace(offers, renewed)
        return False

    def _first_offers(self, member: GroupMember) -> Generator[None, None, list[_Offer]]:
        offers: list[_Offer] = []
        for node in member.nodes:
            if node in self._rooms:
                yield
                offer = self._offer(member.uid, node)
                if offer is not None:
                    offers.append(offer)
        heapq.heapify(offers)
        return offers

    def _offer(self, uid: str, node: str) -> _Offer | None:
        """The node with this member next to those that are there; None where it cannot come."""
        room, before = self._rooms[node], self.found.get(node, NodeEvictions((), ()))
        members, elsewhere = (*before.members, uid), self._victims_elsewhere(node)
        victims = cheapest(
            room.candidates,
            lambda evicted: room.fits(members, evicted),
            lambda evicted: self._violations(elsewhere | evicted),
            most_sets=self._most_sets,
        )
        if victims is None or self._violations(elsewhere | _uids(victims)):
            return None
        known = _uids(before.victims)
        added = [victim for victim in victims if victim.uid not in known]
        return _Offer(cost(added, lambda evicted: 0), node, self._stamp(node), victims)

    def _stamp(self, node: str) -> tuple[int, int]:
        here = self.found.get(node, NodeEvictions((), ()))
        return len(here.members), len(self._victims_elsewhere(node))

    def _victims_elsewhere(self, node: str) -> frozenset[str]:
        """Budgets count the pods of all nodes."""
        return frozenset().union(*(_uids(each.victims) for name, each in self.found.items() if name != node))


def _uids(victims: Collection[Victim]) -> frozenset[str]:
    return frozenset(victim.uid for victim in victims)
