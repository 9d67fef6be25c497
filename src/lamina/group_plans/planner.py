"""Plans for a pod group: places for its members, searched together. Nothing is held here.

The largest member is placed first. Which nodes a member may use is decided by kube-scheduler, which reveals it for one
member after another. Members with equal templates may use the same nodes; a member unlike all that were filtered so far
is assumed to be allowed everywhere.

A plan takes a bounded time, because everything else waits for it: groups have bounded numbers of members and kinds of
members, a group that the free capacity cannot take is refused without a search, and a search is cut off.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from lamina.core.requests import PodRequest
from lamina.dialects.groups import GroupName
from lamina.group_plans.search import GroupPlan, PlanBasis, PlanSearch, kind_of
from lamina.ledger.pod_groups import MAX_MEMBERS, PodGroup, size_order, too_few_members, too_few_places
from lamina.ledger.pod_stages import Stage
from lamina.ledger.pods import ParsedPod
from lamina.ledger.quotas import excess
from lamina.placement import most_pods

MAX_KINDS = 16
"""The most kinds of members, by template and request: each costs a look at all nodes."""
SEARCH_S = 0.5
"""How long a search may take. Places for 1000 members on 5000 nodes take less than 0.1 s."""
TOO_LARGE_S = 30.0
"""How long a group is refused whose search took too long, so that it does not delay all others again and again."""

Allowed = Mapping[bytes, Sequence[str]]
"""The nodes that passed kube-scheduler's own filters, by template."""


class NoPlan(NamedTuple):
    """Why there is no plan, and for how many seconds this is the answer whatever changes."""

    reason: str
    for_s: float = 0.0


class Lacking(NamedTuple):
    """`needed` of the members lack a place, preferably the first ones.

    `allowed` has the nodes by template, without those where room is held for others.
    """

    members: list[ParsedPod]
    needed: int
    allowed: Allowed


class GroupPlanner:
    """Plans with the ledger as it is."""

    def __init__(self, basis: PlanBasis) -> None:
        self._basis = basis

    def bound_members(self, group: PodGroup) -> frozenset[str]:
        """Members that have a node, including those that were bound since the group was read."""
        ledger = self._basis.nodes.ledger
        bound_since = (uid for uid in group.waiting if ledger.pod(uid).stage is Stage.BOUND)
        return frozenset(uid for uid in group.bound if not ledger.pod(uid).ended).union(bound_since)

    def plan(
        self, name: GroupName, group: PodGroup, first: ParsedPod, nodes: Sequence[str], allowed: Allowed
    ) -> GroupPlan | NoPlan:
        """Places for as many members as are needed, `first` on one of `nodes`; or why there are none."""
        members = [first, *self._other_waiting_members(group, first)]
        bound = len(self.bound_members(group))
        needed = group.needed - bound
        if len(members) < needed:
            return NoPlan(too_few_members(name, group.needed, bound + len(members), group.absent))
        kinds = Counter(kind_of(pod) for pod in members)
        if len(kinds) > MAX_KINDS:
            return NoPlan(f"{name} has {len(kinds)} kinds of members; it may have at most {MAX_KINDS}")
        most = sum(min(count, self._most_places(request)) for (_, request), count in kinds.items())
        if most < needed:
            return NoPlan(too_few_places(name, group.needed, bound, most))
        if len(members) == needed:
            members.sort(key=lambda pod: (not pod.nominated_node, size_order(pod)))
        search = self._search(name, members, first, needed, nodes, allowed)
        if isinstance(search, NoPlan) or (len(search.plan) >= needed and first.uid in search.plan):
            return search if isinstance(search, NoPlan) else search.plan
        if (room := self._basis.rules.room(first)) is not None:
            beyond = self._search(name, members, first, needed, nodes, allowed, within_quotas=False)
            complete = isinstance(beyond, PlanSearch) and len(beyond.plan) >= needed
            excess = room.excess(*beyond.counted, requester=str(name)) if isinstance(beyond, PlanSearch) else ""
            if complete and excess:
                return NoPlan(excess)
        return NoPlan(too_few_places(name, group.needed, bound, len(search.plan)))

    def _search(
        self,
        name: GroupName,
        members: Sequence[ParsedPod],
        first: ParsedPod,
        needed: int,
        nodes: Sequence[str],
        allowed: Allowed,
        *,
        within_quotas: bool = True,
    ) -> PlanSearch | NoPlan:
        """A search that has tried the members one after another, or that it took too long."""
        search = PlanSearch(self._basis, within_quotas=within_quotas)
        closed = self._basis.closed_to({pod.uid for pod in members}, first.priority)
        allowed, end = {first.template: nodes, **allowed}, self._basis.now() + SEARCH_S
        for pod in members:
            if self._basis.now() >= end:
                return NoPlan(
                    f"{name} is too large: in {SEARCH_S:g} s, places were found for {len(search.plan)} of {needed} "
                    f"members; it waits for {TOO_LARGE_S:g} s",
                    TOO_LARGE_S,
                )
            if pod is first:
                _place_nominated(search, pod, nodes) or search.place_on(pod, nodes)
            elif len(search.plan) < needed:
                open_nodes = self._open_nodes(allowed.get(pod.template), closed)
                _place_nominated(search, pod, open_nodes) or search.place(pod, open_nodes)
        return search

    def companions(self, group: PodGroup, pod: ParsedPod, allowed: Allowed) -> Callable[[str], list[PodRequest] | None]:
        """By node, the requests of members that must fit there together with the pod: they fit nowhere else.

        None where the group cannot be complete even then, because members are missing or may not use the node.
        """
        others = self._other_waiting_members(group, pod)
        needed = group.needed - len(self.bound_members(group)) - 1
        search = PlanSearch(self._basis)
        end = self._basis.now() + SEARCH_S
        for other in others:
            if len(others) < needed or self._basis.now() >= end:
                return lambda node: None
            search.place(other, allowed.get(other.template))

        def on(node: str) -> list[PodRequest] | None:
            there = [other for other in others if other.uid in search.plan and search.plan[other.uid].node == node]
            staying = search.without_other_place(there, node)
            unplaced = [
                other
                for other in others
                if other.uid not in search.plan and node in allowed.get(other.template, self._basis.nodes.table.rows)
            ]
            lacking = max(0, needed - (len(search.plan) - len(staying)))
            candidates = sorted([*staying, *unplaced], key=size_order)
            if len(candidates) < lacking:
                return None
            return [other.request for other in candidates[len(candidates) - lacking :] if other.request is not None]

        return on

    def lacking(self, name: GroupName, group: PodGroup, pod: ParsedPod, allowed: Allowed) -> Lacking | None:
        """What the group lacks, if nothing but room keeps it waiting and the nodes of all its members are known."""
        members = sorted([pod, *self._other_waiting_members(group, pod)], key=size_order)
        needed = group.needed - len(self.bound_members(group))
        known = all(member.template in allowed for member in members)
        if not 0 < needed <= len(members) or not known or len({kind_of(member) for member in members}) > MAX_KINDS:
            return None
        smallest = members[-needed:]
        room = self._basis.rules.room(pod)
        if excess([each.request.within(room) for each in smallest if each.request is not None], requester=str(name)):
            return None
        closed = self._basis.closed_to({member.uid for member in members}, pod.priority)
        open_nodes = {template: self._open_nodes(nodes, closed) or () for template, nodes in allowed.items()}
        return Lacking([*smallest, *reversed(members[:-needed])], needed, open_nodes)

    def _other_waiting_members(self, group: PodGroup, first: ParsedPod) -> list[ParsedPod]:
        """The members other than `first` that have no node yet, the largest first."""
        ledger = self._basis.nodes.ledger
        return [pod for uid, pod in group.waiting.items() if uid != first.uid and ledger.pod(uid).stage < Stage.BOUND]

    def _open_nodes(self, nodes: Sequence[str] | None, closed: Set[str]) -> Sequence[str] | None:
        if not closed:
            return nodes
        return [node for node in (self._basis.nodes.table.rows if nodes is None else nodes) if node not in closed]

    def _most_places(self, request: PodRequest | None) -> int:
        """How many members with this request fit at most."""
        if request is None:
            return 0
        if request.native_devices and self._basis.nodes.ledger.offers_native_devices(request.native_devices):
            return MAX_MEMBERS
        return most_pods(request, self._basis.nodes.table)


def _place_nominated(search: PlanSearch, pod: ParsedPod, nodes: Sequence[str] | None) -> bool:
    node = pod.nominated_node
    return bool(node) and (nodes is None or node in nodes) and search.place_on(pod, [node])
