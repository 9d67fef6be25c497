"""The search for places of a group's members, one member after another, over states that the search alone changes.

Each member goes to the node, and to the GPUs, that its policy prefers given the members placed before it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

from lamina.core.host_size import HostSize
from lamina.core.ledger import NOTHING, Taken, amounts, taken_by
from lamina.core.quota_room import QuotaRoom
from lamina.core.requests import PodRequest
from lamina.group_plans.node_order import Candidates, RatedNodes, ScoredNodes
from lamina.group_plans.planned_nodes import HeldNodes, PlannedNodes, TakenGpu
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pods import ParsedPod
from lamina.placement import NodeState, PodPlacement, fit, node_score
from lamina.placement.packing import Ask, PackingTrial


class MemberPlace(NamedTuple):
    """A node, and what a member takes there, by UUID of the GPU."""

    node: str
    taken: Mapping[str, Taken]


GroupPlan = dict[str, MemberPlace]
"""By UID of the member."""
Kind = tuple[bytes, PodRequest | None]


def kind_of(pod: ParsedPod) -> Kind:
    """Equal for members that may use the same nodes and need the same there."""
    return pod.template, pod.request


class Packing(Protocol):
    """The packing policy."""

    def trial(self) -> PackingTrial | None:
        """Ratings of nodes on which places are only planned; None without a learned policy."""

    def ask_trial(self, trial: PackingTrial, request: PodRequest, size: HostSize) -> Ask | None:
        """What to ask the trial about such a pod; None where the policy does not decide."""


class PlanBasis(NamedTuple):
    """What plans rest on."""

    nodes: HeldNodes
    rules: PodRules
    fitting: Callable[[ParsedPod, list[str]], Sequence[str]]
    """On which of these nodes a pod fits while nothing is planned."""
    closed_to: Callable[[Set[str], int], Set[str]]
    """The nodes where room is held for pods other than those with these UIDs, which have this priority."""
    now: Callable[[], float]
    """Seconds of the monotonic clock."""
    packing: Packing | None = None


class _Kind(NamedTuple):
    """Where members of a kind may go. `ask` is what the packing policy is asked, None where it does not decide."""

    request: PodRequest
    candidates: Candidates
    ask: Ask | None
    shares: dict[tuple[QuotaRoom | TakenGpu | None, ...], list[Taken] | None]
    """What a member takes of each of such GPUs within what quotas leave, or None where it does not fit."""


class PlanSearch:
    """One search. `plan` has the places found so far; nothing is held."""

    def __init__(self, basis: PlanBasis, *, within_quotas: bool = True) -> None:
        self.plan: GroupPlan = {}
        self._within_quotas = within_quotas
        self._basis = basis
        self._trial = basis.packing.trial() if basis.packing is not None else None
        self._planned = PlannedNodes(basis.nodes)
        self._asks: dict[str, Ask] = {}
        """By UID of members that the packing policy placed."""
        self._kinds: dict[Kind, _Kind] = {}
        self._counted = NOTHING

    @property
    def counted(self) -> tuple[int, int]:
        """The MiB and percent that the plan comes to, as quotas count."""
        return self._counted.memory_mib, self._counted.cores

    def place(self, pod: ParsedPod, nodes: Sequence[str] | None) -> bool:
        """Add the pod to the plan if it fits. Equal pods come with equal nodes; None allows any node."""
        if pod.request is None:
            return False
        key = kind_of(pod)
        if key not in self._kinds:
            self._kinds[key] = self._find_nodes(pod, pod.request, nodes)
        return self._place(pod.uid, self._kinds[key])

    def place_on(self, pod: ParsedPod, nodes: Sequence[str]) -> bool:
        """The same for a pod with nodes of its own."""
        return pod.request is not None and self._place(pod.uid, self._find_nodes(pod, pod.request, nodes))

    def without_other_place(self, pods: Iterable[ParsedPod], node: str) -> list[ParsedPod]:
        """Which of these pods, all planned on `node`, fit no other node next to the others. The plan stays as it is."""
        staying, before = [], dict(self.plan)
        for pod in pods:
            known = self._kinds.get(kind_of(pod))
            others = None if known is None else known._replace(candidates=known.candidates.without(node))
            place = self.plan.pop(pod.uid)
            if others is None or not self._place(pod.uid, others):
                self.plan[pod.uid] = place
                staying.append(pod)
        for uid, place in self.plan.items():
            if place != before[uid]:
                self._remove(uid, place)
        self.plan = before
        return staying

    def _place(self, uid: str, kind: _Kind) -> bool:
        while (node := kind.candidates.best()) is not None:
            taken = self._fit(kind, node)
            if taken is not None:
                self._add(uid, node, taken, kind.ask)
                return True
            kind.candidates.drop(node)
        return False

    def _fit(self, kind: _Kind, node: str) -> Mapping[str, Taken] | None:
        """What the member would take on the node with the planned members, of the best GPUs where the rules allow."""
        if self._trial is not None and kind.ask is not None:
            taken = self._fit_gpus(kind, node, self._trial.best_gpus(kind.ask, node))
            if taken is not None:
                return taken
        return _taken(self._bounded(kind.request), self._planned.state(node))

    def _bounded(self, request: PodRequest) -> PodRequest:
        """The request within what quotas leave next to the plan."""
        room = request.room
        return request if room is None else request.within(room.less(*self.counted))

    def _fit_gpus(self, kind: _Kind, node: str, best: int) -> Mapping[str, Taken] | None:
        """The same of these GPUs (bits) alone. GPUs that are alike are looked at once: most members find such ones."""
        gpus = self._planned.gpus(node, best)
        request = self._bounded(kind.request)
        likeness = (request.room, *[each.likeness() for each in gpus])
        if likeness not in kind.shares:
            taken = _taken(request, self._planned.state_of(node, gpus)) if gpus else None
            kind.shares[likeness] = None if taken is None else [taken.get(gpu.uuid, NOTHING) for gpu, _ in gpus]
        shares = kind.shares[likeness]
        return None if shares is None else {gpu.uuid: share for (gpu, _), share in zip(gpus, shares, strict=True)}

    def _find_nodes(self, pod: ParsedPod, request: PodRequest, nodes: Sequence[str] | None) -> _Kind:
        """The nodes that fit the pod while nothing is planned."""
        allowed = list(self._basis.nodes.table.rows if nodes is None else nodes)
        fitting = self._basis.fitting(pod, allowed)
        if self._within_quotas:
            request = self._basis.rules.bounded(pod, request)
        ask = self._ask(pod, request)
        if self._trial is not None and ask is not None:
            return _Kind(request, RatedNodes(fitting, self._trial, ask), ask, {})

        def order(node: str) -> float | None:
            state = self._planned.state(node)
            return None if state is None else -node_score(request.node_policy, state.usage)

        return _Kind(request, ScoredNodes(fitting, self._planned.members, order), None, {})

    def _ask(self, pod: ParsedPod, request: PodRequest) -> Ask | None:
        if self._trial is None or self._basis.packing is None:
            return None
        return self._basis.packing.ask_trial(self._trial, request, pod.host_size)

    def _add(self, uid: str, node: str, taken: Mapping[str, Taken], ask: Ask | None) -> None:
        self.plan[uid] = MemberPlace(node, taken)
        self._counted = self._counted.plus(amounts(taken.values()))
        self._planned.add(uid, node, taken)
        if self._trial is not None and ask is not None:
            self._asks[uid] = ask
            self._trial.take(ask, node, self._planned.index_bits(node, taken))

    def _remove(self, uid: str, place: MemberPlace) -> None:
        self._planned.remove(uid, place.node)
        self._counted = self._counted.less(amounts(place.taken.values()))
        ask = self._asks.get(uid)
        if self._trial is not None and ask is not None:
            self._trial.release(ask, place.node, self._planned.index_bits(place.node, place.taken))


def _taken(request: PodRequest, state: NodeState | None) -> Mapping[str, Taken] | None:
    """What the pod would take of the node's GPUs, by UUID; None where it does not fit."""
    placement = None if state is None else fit(request, state)
    return taken_by(placement.containers) if isinstance(placement, PodPlacement) else None
