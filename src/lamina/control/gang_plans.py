"""Places for the members of a pod group, looked for together. Nothing is taken here.

The largest member goes first, each to the node that its policy likes best beside those before it. Which nodes a member
may go to is the scheduler's to say, and it says so one member after the other: those with equal templates may go to the
same nodes, and of one that is unlike all that have come so far it is taken that it may go anywhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.decisions import Decisions
from lamina.control.pod_groups import PodGroup
from lamina.control.quotas import granted
from lamina.control.stages import Stage
from lamina.dialects import parse
from lamina.dialects.groups import GroupName
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.model.requests import PodRequest
from lamina.placement import NodeState, Placement, fit, node_score
from lamina.ports.kube import Object

_DECIDE_NODES = ("schedulerName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


class Place(NamedTuple):
    """A node, and what a member takes there, by UUID of the GPU."""

    node: str
    taken: Mapping[str, Taken]


Plan = dict[str, Place]
"""By UID of the member."""
_Found = dict[tuple[bytes, PodRequest], list[NodeState]]
"""By what a member asks and where it may go: the nodes that fit it while nothing is planned, the best first."""


def template(pod: Object) -> bytes:
    """What decides to which nodes the scheduler lets a pod go; equal for pods that may go to the same."""
    spec = pod["spec"]
    resources = [each.get("resources") for each in (*(spec.get("initContainers") or ()), *spec["containers"])]
    return msgspec.json.encode([*[spec.get(field) for field in _DECIDE_NODES], resources], order="sorted")


class GangPlans:
    """Plans over the ledger as it is."""

    def __init__(self, capacity: Capacity, decisions: Decisions, configuration: Configuration) -> None:
        self._capacity = capacity
        self._decisions = decisions
        self._configuration = configuration

    def bound(self, group: PodGroup) -> frozenset[str]:
        """Members that have a node, those included that got it since the group was read."""
        ledger = self._capacity.ledger
        since = (uid for uid in group.waiting if ledger.pod(uid).stage is Stage.BOUND)
        return frozenset(uid for uid in group.bound if not ledger.pod(uid).over).union(since)

    def plan(
        self,
        name: GroupName,
        group: PodGroup,
        first: Object,
        nodes: Sequence[str],
        offered: Mapping[bytes, Sequence[str]],
    ) -> Plan | str:
        """Places for as many members as are needed, `first` on one of `nodes`; or why there are none.

        `offered` are nodes that passed the scheduler's own filters, by template.
        """
        others = self._others(group, first)
        bound = len(self.bound(group))
        needed = group.needed - bound
        if 1 + len(others) < needed:
            return f"{name} waits for its members: {bound + 1 + len(others)} of {group.needed} are there"
        offered = {template(first): nodes, **offered}
        members = [first, *others] if 1 + len(others) > needed else sorted([first, *others], key=self._size)
        plan: Plan = {}
        found: _Found = {}
        for pod in members:
            if pod is first:
                self._place(pod, nodes, plan, {})
            elif len(plan) < needed:
                self._place(pod, offered.get(template(pod)), plan, found)
        if len(plan) < needed or str(first["metadata"]["uid"]) not in plan:
            return _short(name, group, bound, len(plan))
        amounts = granted(taken for place in plan.values() for taken in place.taken.values())
        return self._decisions.over_quota(first, amounts, who=str(name)) or plan

    def beside(
        self, group: PodGroup, pod: Object, node: str, offered: Mapping[bytes, Sequence[str]]
    ) -> list[PodRequest] | None:
        """What needs room on `node` together with the pod, so that its group is whole: members that fit nowhere else.

        None where the group cannot be whole even then, because members are missing or may not go there.
        """
        others = self._others(group, pod)
        needed = group.needed - len(self.bound(group)) - 1
        if len(others) < needed:
            return None
        plan: Plan = {}
        found: _Found = {}
        left = []
        for other in others:
            nodes = offered.get(template(other), self._capacity.table.rows)
            before = len(plan)
            self._place(other, [name for name in nodes if name != node], plan, found)
            if len(plan) == before and node in nodes:
                left.append(other)
        lacking = max(0, needed - len(plan))
        if len(left) < lacking:
            return None
        requests = [self._request(other) for other in left[len(left) - lacking :]]
        return [request for request in requests if request is not None]

    def _others(self, group: PodGroup, first: Object) -> list[Object]:
        """The other members that have no node yet, the largest first."""
        ledger, uid = self._capacity.ledger, str(first["metadata"]["uid"])
        waiting = [each for each in sorted(group.waiting) if each != uid and ledger.pod(each).stage < Stage.BOUND]
        return sorted((group.waiting[each] for each in waiting), key=self._size)

    def _size(self, pod: Object) -> tuple[int, int, int]:
        """A sort key that puts large pods first."""
        request = self._request(pod)
        containers = request.containers if request else ()
        amounts = [(c.count, c.memory_percent or 0, c.memory_mib or 0) for c in containers]
        return -sum(a[0] for a in amounts), -sum(a[0] * a[1] for a in amounts), -sum(a[0] * a[2] for a in amounts)

    def _request(self, pod: Object) -> PodRequest | None:
        return parse(pod, self._configuration.value)

    def _place(self, pod: Object, nodes: Iterable[str] | None, plan: Plan, found: _Found) -> None:
        """Add the pod to the plan where it fits beside those in it, on the node that its policy likes best.

        Without `nodes` any node will do. `found` serves members that are alike.
        """
        request = self._request(pod)
        if request is None:
            return
        kind = template(pod), request
        if kind not in found:
            names = self._decisions.filter(pod, list(self._capacity.table.rows if nodes is None else nodes)).fitting
            states = [state for name in names if (state := self._state(name, {})) is not None]
            found[kind] = sorted(states, key=lambda each: -node_score(request.node_policy, each.usage))
        used = {place.node for place in plan.values()}
        fresh = next((state for state in found[kind] if state.name not in used), None)
        again = [self._state(state.name, plan) for state in found[kind] if state.name in used]
        choices = [state for state in (*again, fresh) if state is not None]
        for state in sorted(choices, key=lambda each: -node_score(request.node_policy, each.usage)):
            answer = fit(request, state)
            if isinstance(answer, Placement):
                plan[str(pod["metadata"]["uid"])] = Place(state.name, taken_by(answer.containers))
                return

    def _state(self, node: str, plan: Plan) -> NodeState | None:
        """The node with the plan's places taken, and nothing else of the planned pods."""
        ledger = self._capacity.ledger
        here = {uid: place.taken for uid, place in plan.items() if place.node == node}
        inventory = ledger.inventory(node)
        if inventory is None or not here:
            return self._capacity.table.state(node)
        return self._capacity.seen(node, inventory, _with(ledger.taken_without(node, here.keys()), here.values()))


def _with(taken: Mapping[str, Taken], more: Collection[Mapping[str, Taken]]) -> dict[str, Taken]:
    total = dict(taken)
    for each in more:
        for gpu, amount in each.items():
            total[gpu] = total.get(gpu, NOTHING).plus(amount)
    return total


def _short(name: GroupName, group: PodGroup, bound: int, free: int) -> str:
    needed = group.needed - bound
    if bound:
        return (
            f"{name} is placed in part: {bound} of {group.needed} members have a node; "
            f"the others need {needed} places at once and {free} are free"
        )
    return f"{name} is placed whole or not at all: it needs {needed} places at once and {free} are free"
