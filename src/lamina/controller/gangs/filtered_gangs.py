"""What the filter found for groups of which no member has come to be bound: where members may go, and a plan.

The places of a plan are reserved for a few seconds, and members are sent there.
"""

from dataclasses import dataclass, field

from lamina.controller.context import Context
from lamina.controller.gangs.plans import MAX_KINDS
from lamina.controller.gangs.reservations import reserve_all
from lamina.controller.gangs.search import GangPlan
from lamina.dialects.groups import GroupName
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pod_holding import Reservation
from lamina.ledger.pods import ParsedPod

PLAN_S = 5.0
"""How long planned places are reserved, and members sent there, before the first binding comes."""
ALLOWED_S = 300.0
"""How long it is remembered where members may go. kube-scheduler retries a pending pod at least this often."""


@dataclass
class FilteredGang:
    """`allowed` are the nodes that passed kube-scheduler's own filters, by the template of the member. `reserved` are
    the reservations of the planned places, by UID."""

    filtered_at: float
    planned_at: float = 0.0
    allowed: dict[bytes, list[str]] = field(default_factory=dict)
    planned: GangPlan = field(default_factory=dict)
    reserved: dict[str, Reservation] = field(default_factory=dict)

    def allow(self, pod: ParsedPod, nodes: list[str]) -> None:
        """Remember the nodes on which members like this pod may go, for a bounded number of templates."""
        if pod.template in self.allowed or len(self.allowed) < MAX_KINDS:
            self.allowed[pod.template] = nodes


class FilteredGangs:
    """By name. Plans are reserved in the ledger."""

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
        """The plan whose places are all still reserved, or none."""
        now = self._context.now()
        in_force = all(
            each.until > now and self._ledger.reservation_of(uid) is each for uid, each in filtered.reserved.items()
        )
        return filtered.planned if in_force else {}

    def renewed_plan(self, name: GroupName, group: PodGroup, filtered: FilteredGang) -> GangPlan:
        """The plan in force, reserved longer where kube-scheduler itself holds bindings until all members are there."""
        plan, now = self.plan_in_force(filtered), self._context.now()
        lapses = min((each.until for each in filtered.reserved.values()), default=now)
        if plan and lapses < now + PLAN_S / 2 and now < filtered.planned_at + group.timeout_s:
            try:
                filtered.reserved = reserve_all(self._ledger, name, group, plan, now + PLAN_S)
            except DoesNotFit:
                filtered.planned, filtered.reserved = {}, {}
                return {}
        return plan

    def take_plan(self, name: GroupName, group: PodGroup, filtered: FilteredGang, plan: GangPlan) -> None:
        """Reserve the places of a new plan. Raises DoesNotFit, and then there is none."""
        now = self._context.now()
        reserved = reserve_all(self._ledger, name, group, plan, now + PLAN_S)
        filtered.planned, filtered.reserved, filtered.planned_at = plan, reserved, now

    def drop_plan(self, filtered: FilteredGang) -> None:
        """Release the places that are reserved by the plan alone."""
        for uid, reserved in filtered.reserved.items():
            if self._ledger.reservation_of(uid) is reserved:
                self._ledger.release(uid)
        filtered.planned, filtered.reserved = {}, {}

    def expire(self, now: float) -> None:
        """Forget groups of which no member was filtered for a while."""
        self._gangs = {name: each for name, each in self._gangs.items() if each.filtered_at + ALLOWED_S > now}
