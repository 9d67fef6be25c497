"""What the filter found for groups of which no member has come to be bound: where members may go, and a plan.

The places of a plan are held for a few seconds, and members are sent there.
"""

import math
from dataclasses import dataclass, field

from lamina.controller.context import Context
from lamina.controller.gangs.plans import MAX_KINDS
from lamina.controller.gangs.search import GangPlan, holds_of
from lamina.dialects.groups import GroupName
from lamina.ledger.holds import Why
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pods import ParsedPod

PLAN_S = 5.0
"""How long planned places are held, and members sent there, before the first binding comes."""
ALLOWED_S = 300.0
"""How long it is remembered where members may go. kube-scheduler retries a pending pod at least this often."""


@dataclass
class FilteredGang:
    """`allowed` are the nodes that passed kube-scheduler's own filters, by the template of the member."""

    filtered_at: float
    planned_at: float = 0.0
    allowed: dict[bytes, list[str]] = field(default_factory=dict)
    planned: GangPlan = field(default_factory=dict)

    def allow(self, pod: ParsedPod, nodes: list[str]) -> None:
        """Remember the nodes on which members like this pod may go, for a bounded number of templates."""
        if pod.template in self.allowed or len(self.allowed) < MAX_KINDS:
            self.allowed[pod.template] = nodes


class GangPlans:
    """By name. The places of plans are held in the ledger."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ledger = context.ledger
        self._gangs: dict[GroupName, FilteredGang] = {}

    def __contains__(self, name: GroupName) -> bool:
        return name in self._gangs

    def get(self, name: GroupName) -> FilteredGang | None:
        return self._gangs.get(name)

    def allowed(self, name: GroupName) -> dict[bytes, list[str]]:
        """Where members may go, by their template; empty where none was filtered lately."""
        filtered = self._gangs.get(name)
        return filtered.allowed if filtered is not None else {}

    def observe(self, name: GroupName) -> FilteredGang:
        """A member is filtered now."""
        now = self._context.now()
        filtered = self._gangs.setdefault(name, FilteredGang(now))
        filtered.filtered_at = now
        return filtered

    def plan_in_force(self, filtered: FilteredGang) -> GangPlan:
        """The plan whose places are all still held for it, or none."""
        return filtered.planned if self._held_until(filtered) > self._context.now() else {}

    def renewed_plan(self, name: GroupName, group: PodGroup, filtered: FilteredGang) -> GangPlan:
        """The plan in force, held longer where kube-scheduler itself holds bindings until all members are there."""
        plan, now = self.plan_in_force(filtered), self._context.now()
        ends_soon = self._held_until(filtered) < now + PLAN_S / 2
        if plan and ends_soon and now < filtered.planned_at + group.timeout_s:
            try:
                self._ledger.hold_all(holds_of(name, group, plan, now + PLAN_S, Why.PLAN))
            except DoesNotFit:
                filtered.planned = {}
                return {}
        return plan

    def take_plan(self, name: GroupName, group: PodGroup, filtered: FilteredGang, plan: GangPlan) -> None:
        """Hold the places of a new plan. Raises DoesNotFit, and then there is none."""
        now = self._context.now()
        self._ledger.hold_all(holds_of(name, group, plan, now + PLAN_S, Why.PLAN))
        filtered.planned, filtered.planned_at = plan, now

    def drop_plan(self, filtered: FilteredGang) -> None:
        """Release the places that are held by the plan alone."""
        for uid in filtered.planned:
            self._ledger.release(uid, Why.PLAN)
        filtered.planned = {}

    def _held_until(self, filtered: FilteredGang) -> float:
        """Until when all places of the plan are held for it; in the past where one is not."""
        holds = [self._ledger.hold_of(uid) for uid in filtered.planned]
        ends = (hold.until if hold is not None and hold.why is Why.PLAN else -math.inf for hold in holds)
        return min(ends, default=-math.inf)

    def expire(self, now: float) -> None:
        """Forget groups of which no member was filtered for a while."""
        self._gangs = {name: each for name, each in self._gangs.items() if each.filtered_at + ALLOWED_S > now}
