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
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from lamina.control.binding import BindArgs
from lamina.control.capacity import Capacity
from lamina.control.claims import Reservation
from lamina.control.configuration import Configuration
from lamina.control.decisions import Decisions, Filtered
from lamina.control.gang_plans import GangPlans, Place, Plan, template
from lamina.control.ledger import DoesNotFit
from lamina.control.pod_groups import PodGroup, PodGroups
from lamina.control.stages import Stage, pod_state
from lamina.dialects import parse
from lamina.dialects.groups import GroupName, group_of
from lamina.errors import BadInput, LaminaError
from lamina.model.ledger import taken_by
from lamina.model.requests import PodRequest
from lamina.placement import Placement
from lamina.ports.kube import PODS, Kube, NotFound, Object

log = logging.getLogger(__name__)

WAIT_S = 3.0
"""How long one binding waits for the others; with the binding itself it stays within kube-scheduler's patience."""
REST_S = 5.0
_MOST_ALONE = 100_000
LOOK_S = 5.0
"""How long members are sent to the places that were found, while nothing is held."""
OFFERS_S = 300.0
"""How long it is remembered where members may go; kube-scheduler tries a waiting pod at least so often."""


@dataclass
class Gang:
    """A group that holds places. `planned` are its members with their places, `come` those that came to be bound."""

    needed: int
    until: float
    planned: Plan
    come: set[str] = field(default_factory=set)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Look:
    """What the filter found for a group that holds nothing yet, so that its members do not all go for one place.

    `offered` are the nodes that passed the scheduler's own filters, by the template of the member.
    """

    at: float
    offered: dict[bytes, list[str]] = field(default_factory=dict)
    planned: Plan = field(default_factory=dict)


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
        self._plans = GangPlans(capacity, decisions, configuration)
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
        if name is None or filtered.error or parse(pod, self._configuration.value) is None:
            return filtered
        look = self._looked.setdefault(name, Look(self._now()))
        look.at, found_at = self._now(), look.at
        look.offered[template(pod)] = [*filtered.fitting, *filtered.failed]
        if not filtered.fitting:
            return filtered
        try:
            group = await self._groups.read(name, self._configuration.value)
        except BadInput as problem:
            return _refused(filtered, str(problem))
        uid, gang = str(pod["metadata"]["uid"]), self._gangs.get(name)
        if len(self._plans.bound(group)) >= group.needed:
            return filtered
        if found_at + LOOK_S <= self._now():
            look.planned = {}
        planned = look.planned if gang is None else gang.planned
        if uid in planned and planned[uid].node in filtered.fitting:
            return _only(filtered, planned[uid].node)
        if gang is not None:
            return filtered
        plan = self._plan(name, group, pod, filtered.fitting)
        if isinstance(plan, str):
            return _refused(filtered, plan)
        look.planned = plan
        return _only(filtered, plan[uid].node)

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
        if len(self._plans.bound(group)) >= group.needed:
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

    async def beside(self, pod: Object) -> Callable[[str], list[PodRequest] | None]:
        """By node, what needs room there together with the pod: nothing where it is in no group, or others hold places.

        None where room on that node alone does not help, since the group is placed whole. Raises Outside.
        """
        name = group_of(pod)
        if name is None or name in self._gangs:
            return lambda node: []
        try:
            group = await self._groups.read(name, self._configuration.value)
        except BadInput:
            return lambda node: None
        look = self._looked.get(name)
        return lambda node: self._plans.beside(group, pod, node, look.offered if look else {})

    def keep(self, args: BindArgs) -> None:
        """After a binding that failed: hold the pod's place again, which the others of its group rely upon."""
        for gang in self._gangs.values():
            place = gang.planned.get(args.podUID)
            if place is not None and self._capacity.ledger.pod(args.podUID).stage < Stage.BOUND:
                with contextlib.suppress(DoesNotFit):
                    self._reserve(args, place, gang)

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
                bound = sum(ledger.pod(uid).stage is Stage.BOUND for uid in gang.planned)
                self._rests[name] = now + REST_S, _gave_up(name, gang, bound)
                log.warning("%s", self._rests[name][1])
        self._rests = {name: rest for name, rest in self._rests.items() if rest[0] > now}
        self._looked = {name: look for name, look in self._looked.items() if look.at + OFFERS_S > now}

    def _plan(self, name: GroupName, group: PodGroup, first: Object, nodes: list[str]) -> Plan | str:
        """Places for as many members as are needed, `first` on one of `nodes`; or why there are none."""
        if name in self._rests and self._rests[name][0] > self._now():
            return self._rests[name][1]
        look = self._looked.get(name)
        return self._plans.plan(name, group, first, nodes, look.offered if look else {})

    def _hold(self, name: GroupName, group: PodGroup, plan: Plan) -> Gang:
        """Take all places of the plan, or none. Nothing was awaited since it was made, so they are free.

        Raises DoesNotFit for a member that has ended.
        """
        ledger, until = self._capacity.ledger, self._now() + group.timeout_s
        for uid, place in plan.items():
            pod = group.waiting.get(uid)
            label = pod["metadata"]["name"] if pod else uid
            try:
                ledger.reserve(uid, name.namespace, label, Reservation(place.node, place.taken, until))
            except DoesNotFit:
                for each in plan:
                    ledger.release(each)
                raise
        gang = Gang(group.needed - len(self._plans.bound(group)), until, plan)
        self._gangs[name] = gang
        return gang

    def _moved(self, gang: Gang, args: BindArgs, pod: Object) -> str:
        """Hold the pod's place on the node where it comes to be bound. Returns why that cannot be, or nothing."""
        ledger = self._capacity.ledger
        if ledger.holds(args.podUID, args.node):
            return ""
        request = parse(pod, self._configuration.value)
        placement = None if request is None else self._decisions.place(pod, request, args.node)
        if not isinstance(placement, Placement):
            return f"node {args.node} has no place for the pod beside those of its group"
        place = Place(args.node, taken_by(placement.containers))
        try:
            self._reserve(args, place, gang)
        except DoesNotFit as error:
            return str(error)
        gang.planned[args.podUID] = place
        return ""

    def _reserve(self, args: BindArgs, place: Place, gang: Gang) -> None:
        at = Reservation(place.node, place.taken, gang.until)
        self._capacity.ledger.reserve(args.podUID, args.podNamespace, args.podName, at)


def _gave_up(name: GroupName, gang: Gang, bound: int) -> str:
    if bound:
        return f"{name} is placed in part: only {bound} of its members could be bound in time; it goes on soon"
    if gang.complete.is_set():
        return f"{name} gave up: its members came, but could not be bound in time; it begins again soon"
    return f"{name} gave up: {len(gang.come)} of {gang.needed} members came in time; it begins again soon"


def _only(filtered: Filtered, node: str) -> Filtered:
    others = {name: "the pod's group has its place on another node" for name in filtered.fitting if name != node}
    return Filtered(fitting=[node], failed={**filtered.failed, **others}, unresolvable=filtered.unresolvable)


def _refused(filtered: Filtered, why: str) -> Filtered:
    failed = {**filtered.failed, **dict.fromkeys(filtered.fitting, why)}
    return Filtered(fitting=[], failed=failed, unresolvable=filtered.unresolvable, summary=why)
