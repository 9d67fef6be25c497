"""The search for places of a group's members, one member after another, over states that the search alone changes.

Each member goes to the node that its policy prefers given the members placed before it. Nodes only fill up during a
search, so a node on which a member does not fit is not tried again for equal members: the search takes time in
proportion to the places and the nodes.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamina.controller.capacity.node_states import Capacity
from lamina.controller.pods import ParsedPod
from lamina.controller.scheduling.decisions import Decisions
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.model.requests import PodRequest
from lamina.placement import NodeState, PodPlacement, fit, node_score


class MemberPlace(NamedTuple):
    """A node, and what a member takes there, by UUID of the GPU."""

    node: str
    taken: Mapping[str, Taken]


GangPlan = dict[str, MemberPlace]
"""By UID of the member."""


def kind_of(pod: ParsedPod) -> tuple[bytes, PodRequest | None]:
    """Equal for members that may use the same nodes and need the same there."""
    return pod.template, pod.request


class _Candidate(NamedTuple):
    """A node that may take one more member of a kind; the lowest is tried first."""

    order: float
    """The negated score."""
    place: int
    """Among nodes of equal score, the one that comes first in the table."""
    node: str
    members: int
    """How many members were planned there when the score was computed."""


class PlanSearch:
    """One search. `plan` has the places found so far; nothing is reserved."""

    def __init__(self, capacity: Capacity, decisions: Decisions) -> None:
        self.plan: GangPlan = {}
        self._capacity = capacity
        self._decisions = decisions
        self._candidates: dict[tuple[bytes, PodRequest | None], list[_Candidate]] = {}
        self._planned: dict[str, dict[str, Mapping[str, Taken]]] = {}
        """By node and UID, what the planned members take there."""
        self._states: dict[str, NodeState | None] = {}
        """The nodes with the planned members, where there are any."""

    def place(self, pod: ParsedPod, nodes: Sequence[str] | None) -> bool:
        """Add the pod to the plan if it fits. Equal pods come with equal nodes; None allows any node."""
        if pod.request is None:
            return False
        kind = kind_of(pod)
        if kind not in self._candidates:
            self._candidates[kind] = self._find_candidates(pod, pod.request, nodes)
        return self._place(pod.uid, pod.request, self._candidates[kind])

    def place_on(self, pod: ParsedPod, nodes: Sequence[str]) -> bool:
        """The same for a pod with nodes of its own."""
        return pod.request is not None and self._place(
            pod.uid, pod.request, self._find_candidates(pod, pod.request, nodes)
        )

    def without_other_place(self, pods: Iterable[ParsedPod], node: str) -> list[ParsedPod]:
        """Which of these pods, all planned on `node`, fit no other node next to the others. The plan stays as it is."""
        staying, before = [], dict(self.plan)
        for pod in pods:
            candidates = [each for each in self._candidates.get(kind_of(pod), ()) if each.node != node]
            heapq.heapify(candidates)
            if pod.request is None or not self._place(pod.uid, pod.request, candidates):
                staying.append(pod)
        for uid, place in self.plan.items():
            if place != before[uid]:
                del self._planned[place.node][uid]
                self._states.pop(place.node, None)
        self.plan = before
        return staying

    def _place(self, uid: str, request: PodRequest, candidates: list[_Candidate]) -> bool:
        while candidates:
            candidate = heapq.heappop(candidates)
            node, state = candidate.node, self._state(candidate.node)
            if state is None:
                continue
            members = len(self._planned.get(node, ()))
            if members != candidate.members:  # its score has changed since
                heapq.heappush(candidates, _Candidate(_order(request, state), candidate.place, node, members))
                continue
            placement = fit(request, state)
            if isinstance(placement, PodPlacement):
                self._add(uid, node, taken_by(placement.containers))
                heapq.heappush(candidates, candidate)
                return True
        return False

    def _find_candidates(self, pod: ParsedPod, request: PodRequest, nodes: Sequence[str] | None) -> list[_Candidate]:
        """The nodes that fit the pod while nothing is planned."""
        table = self._capacity.table
        allowed = list(table.rows if nodes is None else nodes)
        candidates = [
            _Candidate(_order(request, state), place, name, 0)
            for place, name in enumerate(self._decisions.filter(pod, allowed).fitting)
            if (state := table.state(name)) is not None
        ]
        heapq.heapify(candidates)
        return candidates

    def _add(self, uid: str, node: str, taken: Mapping[str, Taken]) -> None:
        self.plan[uid] = MemberPlace(node, taken)
        self._planned.setdefault(node, {})[uid] = taken
        self._states.pop(node, None)

    def _state(self, node: str) -> NodeState | None:
        """The node with the planned places taken, and nothing else of the planned pods."""
        planned = self._planned.get(node)
        inventory = self._capacity.ledger.inventory(node)
        if inventory is None or not planned:
            return self._capacity.table.state(node)
        if node not in self._states:
            taken = self._capacity.ledger.holdings.taken_without_pods(node, planned.keys())
            self._states[node] = self._capacity.state_with(node, inventory, _sum(taken, planned.values()))
        return self._states[node]


def _order(request: PodRequest, state: NodeState) -> float:
    return -node_score(request.node_policy, state.usage)


def _sum(taken: Mapping[str, Taken], planned: Iterable[Mapping[str, Taken]]) -> dict[str, Taken]:
    total = dict(taken)
    for shares in planned:
        for gpu, amount in shares.items():
            total[gpu] = total.get(gpu, NOTHING).plus(amount)
    return total
