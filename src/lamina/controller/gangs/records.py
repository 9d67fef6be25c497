"""One record of each pod group that is being placed: where members may go, a plan, and who is to be bound.

First there is where members may go, and a plan, whose places are held for a few seconds, and members are sent there.
Once a member is to be bound, the group holds all its places until those are bound, or its time is up. Bindings wait
until every needed member has passed kube-scheduler's own filters, and then continue. A binding that has waited almost
as long as kube-scheduler's own timeout is refused with the reason; its place stays held for the next attempt.
"""

import asyncio
import contextlib
import math
from dataclasses import dataclass, field

from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.context import Context
from lamina.dialects.groups import GroupName
from lamina.group_plans import MAX_KINDS, GroupPlan, MemberPlace
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pod_stages import Stage
from lamina.ledger.pods import ParsedPod
from lamina.ports.clock import within

PLAN_S = 5.0
"""How long planned places are held, and members sent there, before the first binding comes."""
ALLOWED_S = 300.0
"""How long it is remembered where members may go. kube-scheduler retries a pending pod at least this often."""
WAIT_S = 3.0
"""How long one binding waits for the other members: together they stay within kube-scheduler's timeout."""


@dataclass
class GangBinding:
    """A group that holds its places: `needed` members were not bound at the start, and `arrived` are to be bound."""

    needed: int
    until: float
    arrived: set[str] = field(default_factory=set)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Gang:
    """`allowed` are the nodes that passed kube-scheduler's own filters, by the template of the member.

    `plan` has the places of members that are held for the plan alone or, with `binding`, until these are bound.
    """

    filtered_at: float = -math.inf
    allowed: dict[bytes, list[str]] = field(default_factory=dict)
    plan: GroupPlan = field(default_factory=dict)
    planned_at: float = 0.0
    binding: GangBinding | None = None

    def allow(self, pod: ParsedPod, nodes: list[str]) -> None:
        """Remember the nodes on which members like this pod may go, for a bounded number of templates."""
        if pod.template in self.allowed or len(self.allowed) < MAX_KINDS:
            self.allowed[pod.template] = nodes


class Gangs:
    """By name. Places are held in the ledger."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ledger = context.ledger
        self._gangs: dict[GroupName, Gang] = {}

    def __contains__(self, name: GroupName) -> bool:
        return name in self._gangs

    def get(self, name: GroupName) -> Gang | None:
        return self._gangs.get(name)

    def binding(self, name: GroupName) -> GangBinding | None:
        """None where no member has come to be bound."""
        gang = self._gangs.get(name)
        return gang.binding if gang is not None else None

    def allowed(self, name: GroupName) -> dict[bytes, list[str]]:
        """Where members may go, by their template; empty where none was filtered lately."""
        gang = self._gangs.get(name)
        return gang.allowed if gang is not None else {}

    def observe(self, name: GroupName) -> Gang:
        """A member is filtered now."""
        gang = self._gangs.setdefault(name, Gang())
        gang.filtered_at = self._context.now()
        return gang

    def plan_in_force(self, gang: Gang) -> GroupPlan:
        """The plan whose places are all still held for it, or none."""
        return gang.plan if self._held_until(gang) > self._context.now() else {}

    def renewed_plan(self, name: GroupName, group: PodGroup, gang: Gang) -> GroupPlan:
        """The plan in force, held longer where kube-scheduler itself holds bindings until all members are there."""
        plan, now = self.plan_in_force(gang), self._context.now()
        ends_soon = self._held_until(gang) < now + PLAN_S / 2
        if plan and ends_soon and now < gang.planned_at + group.timeout_s:
            try:
                self._ledger.hold_all(_holds_of(name, group, plan, now + PLAN_S, Why.PLAN))
            except DoesNotFit:
                gang.plan = {}
                return {}
        return plan

    def take_plan(self, name: GroupName, group: PodGroup, gang: Gang, plan: GroupPlan) -> None:
        """Hold the places of a new plan. Raises DoesNotFit, and then there is none."""
        now = self._context.now()
        self._ledger.hold_all(_holds_of(name, group, plan, now + PLAN_S, Why.PLAN))
        gang.plan, gang.planned_at = plan, now

    def drop_plan(self, gang: Gang) -> None:
        """Release the places that are held by the plan alone."""
        for uid in gang.plan:
            self._ledger.release(uid, Why.PLAN)
        gang.plan = {}

    def bind(self, name: GroupName, group: PodGroup, plan: GroupPlan, needed: int) -> None:
        """Hold all places of the plan until the group's timeout. `needed` members are not bound yet.

        Raises DoesNotFit for a member that has ended.
        """
        until = self._context.now() + group.timeout_s
        self._ledger.hold_all(_holds_of(name, group, plan, until, Why.GROUP))
        gang = self._gangs.setdefault(name, Gang())
        gang.plan, gang.binding = plan, GangBinding(needed, until)

    def move_place(self, name: GroupName, args: BindArgs, place: MemberPlace) -> None:
        """Hold another place for the pod that is to be bound. Raises DoesNotFit, and then it keeps its own."""
        gang = self._gangs[name]
        if gang.binding is not None:
            self._hold(args, place, gang.binding)
            gang.plan[args.podUID] = place

    async def wait_for_members(self, name: GroupName, uid: str) -> str:
        """The pod is to be bound. Returns what is missing, or nothing once all needed members are to be bound."""
        binding = self.binding(name)
        if binding is None:
            return ""
        binding.arrived = {uid for uid in binding.arrived if not self._ledger.pod(uid).ended} | {uid}
        if len(binding.arrived) >= binding.needed:
            binding.complete.set()
        left_s = max(0.0, binding.until - self._context.now())
        try:
            await within(self._context.clock, min(WAIT_S, left_s), binding.complete.wait())
        except TimeoutError:
            arrived, needed = len(binding.arrived), binding.needed
            return f"{name} waits for its members: {arrived} of {needed} are ready to be bound"
        return ""

    def restore_place(self, args: BindArgs) -> None:
        """After a failed binding, hold the pod's place again, because the other members rely on it."""
        for gang in self._gangs.values():
            place = gang.plan.get(args.podUID)
            if gang.binding and place is not None and self._ledger.pod(args.podUID).stage < Stage.BOUND:
                with contextlib.suppress(DoesNotFit):
                    self._hold(args, place, gang.binding)

    def expire(self, now: float) -> dict[GroupName, str]:
        """Release the places of groups whose time is up, and forget groups that are placed, or of which no member was
        filtered for a while. Why some gave up."""
        given_up: dict[GroupName, str] = {}
        for name, gang in list(self._gangs.items()):
            if gang.binding is not None:
                with self._context.set_aside.around("pod group", f"{name.namespace}/{name.name}"):
                    if reason := self._expire(name, gang, gang.binding, now):
                        given_up[name] = reason
            if gang.binding is None and gang.filtered_at + ALLOWED_S <= now:
                del self._gangs[name]
        return given_up

    def _expire(self, name: GroupName, gang: Gang, binding: GangBinding, now: float) -> str:
        unbound = [uid for uid in gang.plan if self._ledger.pod(uid).stage < Stage.BOUND]
        if unbound and now < binding.until:
            return ""
        plan, gang.plan, gang.binding = gang.plan, {}, None
        for uid in unbound:
            self._ledger.release(uid, Why.GROUP)
        bound = sum(self._ledger.pod(uid).stage is Stage.BOUND for uid in plan)
        return _reason_to_give_up(name, binding, bound) if unbound else ""

    def _held_until(self, gang: Gang) -> float:
        """Until when all places of the plan are held for it; in the past where one is not."""
        holds = [self._ledger.hold_of(uid) for uid in gang.plan]
        ends = (hold.until if hold is not None and hold.why is Why.PLAN else -math.inf for hold in holds)
        return min(ends, default=-math.inf)

    def _hold(self, args: BindArgs, place: MemberPlace, binding: GangBinding) -> None:
        self._ledger.hold(Hold(args.podUID, args.podNamespace, args.podName, *place, binding.until, Why.GROUP))


def _holds_of(name: GroupName, group: PodGroup, plan: GroupPlan, until: float, why: Why) -> list[Hold]:
    """What is held for the plan. The places are free: nothing was awaited since the plan was made, or they are held
    already."""
    names = {uid: group.waiting[uid].name if uid in group.waiting else uid for uid in plan}
    return [Hold(uid, name.namespace, names[uid], *place, until, why) for uid, place in plan.items()]


def _reason_to_give_up(name: GroupName, binding: GangBinding, bound: int) -> str:
    if bound:
        return f"{name} is placed in part: only {bound} of its members could be bound in time; it continues soon"
    if binding.complete.is_set():
        return f"{name} gave up: its members were ready, but could not be bound in time; it starts again soon"
    return (
        f"{name} gave up: {len(binding.arrived)} of {binding.needed} members were ready to be bound in time; "
        f"it starts again soon"
    )
