"""Pod groups are placed whole or not at all.

kube-scheduler decides one pod after the other and binds beside that, so an extender can hold places while it waits for
the rest of a group. Places for the whole group are looked for at once and taken in one step when its first member comes
to be bound: a group that has not room for all holds nothing, so two groups never stand half-placed in each other's way.
Bindings wait until every member that is needed has come through the scheduler's own filters, and then go on. A binding
that has waited too long for kube-scheduler's patience is given back with the reason; the places stay held for its next
attempt, until the group's time limit. Then everything is released, and the group rests a little so that another one
gets its turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lamina.control.binding import BindArgs
from lamina.control.capacity import Capacity
from lamina.control.claims import Reservation
from lamina.control.configuration import Configuration
from lamina.control.decisions import Decisions, Filtered
from lamina.control.ledger import DoesNotFit
from lamina.control.pod_groups import PodGroup, PodGroups
from lamina.control.stages import Stage, pod_state
from lamina.dialects import parse
from lamina.dialects.groups import GroupName, group_of
from lamina.errors import BadInput, LaminaError
from lamina.model.ledger import NOTHING, Taken, taken_by
from lamina.placement import NodeState, Placement, fit, node_score
from lamina.ports.kube import PODS, Kube, NotFound, Object

WAIT_S = 3.0
"""How long one binding waits for the others; with the binding itself it stays within kube-scheduler's patience."""
REST_S = 5.0
_MOST_ALONE = 100_000
LOOK_S = 5.0


@dataclass
class Gang:
    """A group that holds places. `planned` are its members with their nodes, `come` those that came to be bound."""

    needed: int
    until: float
    planned: dict[str, str]
    come: set[str] = field(default_factory=set)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Look:
    """What the filter found for a group that holds nothing yet, so that its members do not all go for one place.

    `offered` are the nodes that passed the scheduler's own filters for a member: the others can go there too.
    """

    at: float
    offered: list[str]
    planned: dict[str, str] = field(default_factory=dict)


Plan = dict[str, tuple[str, Mapping[str, Taken]]]
"""By UID of the member: its node, and what it takes there."""


class Gangs:
    """Holds places for groups in the ledger. `now` is a monotonic clock."""

    def __init__(
        self,
        kube: Kube,
        capacity: Capacity,
        decisions: Decisions,
        configuration: Configuration,
        *,
        now: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._capacity = capacity
        self._decisions = decisions
        self._configuration = configuration
        self._groups = PodGroups(kube, now=now)
        self._now = now
        self._gangs: dict[GroupName, Gang] = {}
        self._rests: dict[GroupName, tuple[float, str]] = {}
        self._looked: dict[GroupName, Look] = {}
        self._alone: set[str] = set()
        """UIDs of pods that came through the filter and belong to no group: their binding need not ask."""

    async def narrow(self, pod: Object, filtered: Filtered) -> Filtered:
        """What the filter answers for a member of a group: the node planned for it, or why the group has to wait.

        Raises Outside where the group cannot be read.
        """
        self.tick()
        name = group_of(pod)
        if name is None and filtered.fitting:
            if len(self._alone) >= _MOST_ALONE:
                self._alone.clear()
            self._alone.add(str(pod["metadata"].get("uid")))
        if name is None or not filtered.fitting or parse(pod, self._configuration.value) is None:
            return filtered
        try:
            group = await self._groups.read(name, self._configuration.value)
        except BadInput as problem:
            return _refused(filtered, str(problem))
        uid, gang = str(pod["metadata"]["uid"]), self._gangs.get(name)
        if len(self._bound(group)) >= group.needed:
            return filtered
        look = self._looked.get(name)
        planned = gang.planned if gang is not None else look.planned if look is not None else {}
        if planned.get(uid) in filtered.fitting:
            return _only(filtered, planned[uid])
        if gang is not None:
            return filtered
        self._looked[name] = look = Look(self._now(), filtered.fitting)
        plan = self._plan(name, group, pod, filtered.fitting)
        if isinstance(plan, str):
            return _refused(filtered, plan)
        look.planned = {each: node for each, (node, _) in plan.items()}
        return _only(filtered, plan[uid][0])

    async def wait(self, args: BindArgs) -> str:
        """Hold places for the pod's group and wait for its members. Returns why it cannot be bound yet, or nothing."""
        if args.podUID in self._alone:
            self._alone.discard(args.podUID)
            return ""
        self.tick()
        try:
            pod = await self._kube.get(PODS, args.podName, namespace=args.podNamespace)
            name = group_of(pod)
            placed = pod_state(pod).stage is not Stage.PENDING
            if name is None or placed or parse(pod, self._configuration.value) is None:
                return ""
            group = await self._groups.read(name, self._configuration.value)
        except NotFound:
            return ""  # the binding says so
        except LaminaError as error:
            return str(error)
        if len(self._bound(group)) >= group.needed:
            return ""
        gang = self._gangs.get(name)
        if gang is None:
            plan = self._plan(name, group, pod, [args.node])
            if isinstance(plan, str):
                return plan
            try:
                gang = self._hold(name, group, plan)
            except DoesNotFit as error:
                return str(error)
        elif refusal := self._moved(gang, args, pod):
            return refusal
        gang.come = {uid for uid in gang.come if not self._capacity.ledger.pod(uid).over} | {args.podUID}
        if len(gang.come) >= gang.needed:
            gang.complete.set()
        try:
            async with asyncio.timeout(min(WAIT_S, max(0.0, gang.until - self._now()))):
                await gang.complete.wait()
        except TimeoutError:
            return f"{name} waits for its members: {len(gang.come)} of {gang.needed} have come so far"
        return ""

    def tick(self) -> None:
        """Release the places of groups whose time is up, and forget those that are placed."""
        now = self._now()
        ledger = self._capacity.ledger
        for name, gang in list(self._gangs.items()):
            open_places = [uid for uid in gang.planned if ledger.pod(uid).stage < Stage.BOUND]
            if open_places and now < gang.until:
                continue
            del self._gangs[name]
            for uid in open_places:
                ledger.release(uid)
            if open_places:
                why = f"{name} gave up: {len(gang.come)} of {gang.needed} members came in time; it begins again soon"
                self._rests[name] = now + REST_S, why
        self._rests = {name: rest for name, rest in self._rests.items() if rest[0] > now}
        self._looked = {name: look for name, look in self._looked.items() if look.at + LOOK_S > now}

    def _bound(self, group: PodGroup) -> frozenset[str]:
        """Members that have a node, those included that got it since the group was read."""
        ledger = self._capacity.ledger
        since = (uid for uid in group.waiting if ledger.pod(uid).stage is Stage.BOUND)
        return frozenset(uid for uid in group.bound if not ledger.pod(uid).over).union(since)

    def _plan(self, name: GroupName, group: PodGroup, first: Object, nodes: list[str]) -> Plan | str:
        """Places for as many members as are needed, `first` on one of `nodes`; or why there are none."""
        if name in self._rests and self._rests[name][0] > self._now():
            return self._rests[name][1]
        uid = str(first["metadata"]["uid"])
        ledger = self._capacity.ledger
        waiting = [each for each in sorted(group.waiting) if each != uid and ledger.pod(each).stage < Stage.BOUND]
        others = [group.waiting[each] for each in waiting]
        bound = self._bound(group)
        needed = group.needed - len(bound)
        if 1 + len(others) < needed:
            there = len(bound) + 1 + len(others)
            return f"{name} waits for its members: {there} of {group.needed} are there"
        plan: Plan = {}
        offered = self._looked[name].offered if name in self._looked else nodes
        for pod in (first, *others):
            if len(plan) == needed:
                break
            self._place(pod, nodes if pod is first else offered, plan)
            if pod is first and not plan:
                break
        if len(plan) < needed:
            return f"{name} is placed whole or not at all: it needs {needed} places at once and {len(plan)} are free"
        return plan

    def _place(self, pod: Object, nodes: Iterable[str], plan: Plan) -> None:
        """Add the pod to the plan where it fits beside those in it, on the node that its policy likes best."""
        request = parse(pod, self._configuration.value)
        fitting = self._decisions.filter(pod, list(nodes)).fitting
        states = [state for node in fitting if (state := self._state(node, plan)) is not None]
        if request is None:
            return
        for state in sorted(states, key=lambda each: -node_score(request.node_policy, each.usage)):
            answer = fit(request, state)
            if isinstance(answer, Placement):
                plan[str(pod["metadata"]["uid"])] = state.name, taken_by(answer.containers)
                return

    def _state(self, node: str, plan: Plan) -> NodeState | None:
        """The node with the plan's places taken, and nothing else of the planned pods."""
        ledger = self._capacity.ledger
        here = {uid: taken for uid, (at, taken) in plan.items() if at == node}
        inventory = ledger.inventory(node)
        if inventory is None or not here:
            return self._capacity.table.state(node)
        total = dict(ledger.taken_without(node, here.keys()))
        for taken in here.values():
            for gpu, more in taken.items():
                total[gpu] = total.get(gpu, NOTHING).plus(more)
        return NodeState.of(node, inventory, total)

    def _hold(self, name: GroupName, group: PodGroup, plan: Plan) -> Gang:
        """Take all places of the plan, or none. Nothing was awaited since it was made, so they are free.

        Raises DoesNotFit for a member that has ended.
        """
        ledger, until = self._capacity.ledger, self._now() + group.timeout_s
        for uid, (node, taken) in plan.items():
            pod = group.waiting.get(uid)
            label = pod["metadata"]["name"] if pod else uid
            try:
                ledger.reserve(uid, name.namespace, label, Reservation(node, taken, until))
            except DoesNotFit:
                for each in plan:
                    ledger.release(each)
                raise
        gang = Gang(group.needed - len(self._bound(group)), until, {uid: node for uid, (node, _) in plan.items()})
        self._gangs[name] = gang
        return gang

    def _moved(self, gang: Gang, args: BindArgs, pod: Object) -> str:
        """Hold the pod's place on the node where it comes to be bound. Returns why that cannot be, or nothing."""
        ledger = self._capacity.ledger
        if ledger.holds(args.podUID, args.node):
            return ""
        request = parse(pod, self._configuration.value)
        placement = None if request is None else self._decisions.place(request, args.podUID, args.node)
        if not isinstance(placement, Placement):
            return f"node {args.node} has no place for the pod beside those of its group"
        place = Reservation(args.node, taken_by(placement.containers), gang.until)
        try:
            ledger.reserve(args.podUID, args.podNamespace, args.podName, place)
        except DoesNotFit as error:
            return str(error)
        gang.planned[args.podUID] = args.node
        return ""


def _only(filtered: Filtered, node: str) -> Filtered:
    others = {name: "the pod's group has its place on another node" for name in filtered.fitting if name != node}
    return Filtered(fitting=[node], failed={**filtered.failed, **others}, unresolvable=filtered.unresolvable)


def _refused(filtered: Filtered, why: str) -> Filtered:
    failed = {**filtered.failed, **dict.fromkeys(filtered.fitting, why)}
    return Filtered(fitting=[], failed=failed, unresolvable=filtered.unresolvable, summary=why)
