"""Groups whose members have started binding: they hold all their places until those are bound, or the time is up.

Bindings wait until every needed member has passed kube-scheduler's own filters, and then continue. A binding that has
waited almost as long as kube-scheduler's own timeout is refused with the reason; its place stays held for the next
attempt, until then.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field

from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.context import Context
from lamina.controller.gangs.search import GangPlan, MemberPlace, holds_of
from lamina.dialects.groups import GroupName
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pod_stages import Stage
from lamina.ports.clock import within

WAIT_S = 3.0
"""How long one binding waits for the other members: together they stay within kube-scheduler's timeout."""


@dataclass
class HeldGang:
    """A group that holds places. `planned` are its members with their places, `arrived` those that are to be bound."""

    needed: int
    until: float
    planned: GangPlan
    arrived: set[str] = field(default_factory=set)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


class GangHolds:
    """By name. Places are held in the ledger."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ledger = context.ledger
        self._gangs: dict[GroupName, HeldGang] = {}

    def __contains__(self, name: GroupName) -> bool:
        return name in self._gangs

    def get(self, name: GroupName) -> HeldGang | None:
        return self._gangs.get(name)

    def hold(self, name: GroupName, group: PodGroup, plan: GangPlan, needed: int) -> HeldGang:
        """Hold all places of the plan until the group's timeout. `needed` members are not bound yet.

        Raises DoesNotFit for a member that has ended.
        """
        until = self._context.now() + group.timeout_s
        self._ledger.hold_all(holds_of(name, group, plan, until, Why.GROUP))
        held = self._gangs[name] = HeldGang(needed, until, plan)
        return held

    def move_place(self, held: HeldGang, args: BindArgs, place: MemberPlace) -> None:
        """Hold another place for the pod that is to be bound. Raises DoesNotFit, and then it keeps its own."""
        self._hold(args, place, held)
        held.planned[args.podUID] = place

    async def wait_for_members(self, name: GroupName, held: HeldGang, uid: str) -> str:
        """The pod is to be bound. Returns what is missing, or nothing once all needed members are to be bound."""
        held.arrived = {uid for uid in held.arrived if not self._ledger.pod(uid).ended} | {uid}
        if len(held.arrived) >= held.needed:
            held.complete.set()
        left_s = max(0.0, held.until - self._context.now())
        try:
            await within(self._context.clock, min(WAIT_S, left_s), held.complete.wait())
        except TimeoutError:
            return f"{name} waits for its members: {len(held.arrived)} of {held.needed} are ready to be bound"
        return ""

    def restore_place(self, args: BindArgs) -> None:
        """After a failed binding, hold the pod's place again, because the other members rely on it."""
        for held in self._gangs.values():
            place = held.planned.get(args.podUID)
            if place is not None and self._ledger.pod(args.podUID).stage < Stage.BOUND:
                with contextlib.suppress(DoesNotFit):
                    self._hold(args, place, held)

    def expire(self, now: float) -> dict[GroupName, str]:
        """Release the places of groups whose time is up, and forget groups that are placed. Why some gave up."""
        given_up: dict[GroupName, str] = {}
        for name, held in list(self._gangs.items()):
            with self._context.set_aside.around("pod group", f"{name.namespace}/{name.name}"):
                if reason := self._expire(name, held, now):
                    given_up[name] = reason
        return given_up

    def _expire(self, name: GroupName, held: HeldGang, now: float) -> str:
        unbound = [uid for uid in held.planned if self._ledger.pod(uid).stage < Stage.BOUND]
        if unbound and now < held.until:
            return ""
        del self._gangs[name]
        for uid in unbound:
            self._ledger.release(uid, Why.GROUP)
        bound = sum(self._ledger.pod(uid).stage is Stage.BOUND for uid in held.planned)
        return _reason_to_give_up(name, held, bound) if unbound else ""

    def _hold(self, args: BindArgs, place: MemberPlace, held: HeldGang) -> None:
        self._ledger.hold(Hold(args.podUID, args.podNamespace, args.podName, *place, held.until, Why.GROUP))


def _reason_to_give_up(name: GroupName, held: HeldGang, bound: int) -> str:
    if bound:
        return f"{name} is placed in part: only {bound} of its members could be bound in time; it continues soon"
    if held.complete.is_set():
        return f"{name} gave up: its members were ready, but could not be bound in time; it starts again soon"
    return (
        f"{name} gave up: {len(held.arrived)} of {held.needed} members were ready to be bound in time; "
        f"it starts again soon"
    )
