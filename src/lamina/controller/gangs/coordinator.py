"""Pod groups are placed completely or not at all.

kube-scheduler filters one pod after another and binds pods concurrently, so an extender can hold places while it waits
for the rest of a group. When the first member is filtered, places for the whole group are searched together and
held in one step, for a few seconds until its binding comes, and then until the group's timeout (`records`). A group
without enough places holds nothing, so two groups never block each other half placed. After the
timeout everything is released, and the group pauses so that another one gets a turn.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.context import Context
from lamina.controller.gangs.group_reader import GroupReader
from lamina.controller.gangs.records import Gang, Gangs
from lamina.controller.scheduling.nominated_pods import NominatedPods
from lamina.controller.scheduling.scheduler import FilterResult, Scheduler
from lamina.core.ledger import taken_by
from lamina.core.requests import PodRequest
from lamina.dialects.groups import GroupName
from lamina.errors import BadInput, LaminaError
from lamina.group_plans import MAX_KINDS, GroupPlan, GroupPlanner, Lacking, MemberPlace, NoPlan, PlanBasis, kind_of
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pod_stages import Stage, pod_state
from lamina.ledger.pods import ParsedPod
from lamina.placement import PodPlacement
from lamina.ports.kube import PODS, NotFound

log = logging.getLogger(__name__)

PAUSE_S = 5.0
"""How long a group that gave up lets others go first."""
_ELSEWHERE = "the pod's group has its place on another node"


class RefusedPlan(NamedTuple):
    """What a refused plan depended on: the state of all nodes, the group as it was read, the member and its nodes."""

    stamp: int
    group: PodGroup
    kind: tuple[bytes, PodRequest | None]
    nodes: list[str]


class GangCoordinator:
    """Holds places for groups in the ledger."""

    def __init__(self, context: Context, scheduler: Scheduler, nominated: NominatedPods) -> None:
        self._context = context
        self._ledger = context.ledger
        self._pending = context.pending
        self._scheduler = scheduler
        self._groups = GroupReader(context)
        self._planner = GroupPlanner(plan_basis(context, scheduler, nominated))
        self._gangs = Gangs(context)
        self._paused: dict[GroupName, tuple[float, str]] = {}
        """Until when, and why."""
        self._refusals: dict[GroupName, tuple[RefusedPlan, str]] = {}
        """The last plan that was refused, and why."""

    async def restrict(self, pod: ParsedPod, result: FilterResult) -> FilterResult:
        """The filter's answer for a member of a group: the node planned for it, or why the group has to wait.

        Raises Outside where the group cannot be read.
        """
        self.expire()
        name = pod.group
        self._pending.tried(pod).ungrouped = name is None and bool(result.fitting)
        if name is None or result.error or pod.request is None:
            return result
        gang = self._gangs.observe(name)
        if not _nominated_alone(pod, result):
            gang.allow(pod, [*result.fitting, *result.failed])
        if not result.fitting:
            return result
        try:
            group = await self._groups.read(name, pod)
        except BadInput as problem:
            return _refuse_all(result, str(problem))
        if (known := self._known_answer(name, group, pod, gang, result)) is not None:
            return known
        await self._warm_up(group, pod)
        return self._known_answer(name, group, pod, gang, result) or self._plan_ahead(name, group, pod, gang, result)

    def _known_answer(
        self, name: GroupName, group: PodGroup, pod: ParsedPod, gang: Gang, result: FilterResult
    ) -> FilterResult | None:
        """The filter's answer where no plan is needed for it."""
        if len(self._planner.bound_members(group)) >= group.needed:
            return result
        planned = self._gangs.renewed_plan(name, group, gang) if gang.binding is None else gang.plan
        if pod.uid in planned and planned[pod.uid].node in result.fitting:
            return _only(result, planned[pod.uid].node)
        if pod.uid in planned and _nominated_alone(pod, result):
            return _refuse_all(result, _ELSEWHERE)
        return None if gang.binding is None else result

    def _plan_ahead(
        self, name: GroupName, group: PodGroup, pod: ParsedPod, gang: Gang, result: FilterResult
    ) -> FilterResult:
        """The filter's answer by a new plan, whose places are held until the first binding comes."""
        self._gangs.drop_plan(gang)
        plan = self._plan(name, group, pod, result.fitting)
        if isinstance(plan, str):
            return _refuse_all(result, plan)
        try:
            self._gangs.take_plan(name, group, gang, plan)
        except DoesNotFit as error:
            return _refuse_all(result, str(error))
        for uid in plan:
            if uid != pod.uid and (known := self._pending.of(uid)) is not None:
                known.place_found = known.waits
        return _only(result, plan[pod.uid].node)

    async def _warm_up(self, group: PodGroup, pod: ParsedPod) -> None:
        """Rate all nodes for the kinds of members, outside the event loop. A plan does not need it."""
        examples = {kind_of(member): member for member in (pod, *group.waiting.values())}
        for member in list(examples.values())[:MAX_KINDS]:
            await self._scheduler.warm_up(member)

    async def wait(self, args: BindArgs) -> str:
        """Hold places for the pod's group and wait for its members. Returns why it cannot be bound yet, or nothing."""
        if (known := self._pending.of(args.podUID)) is not None and known.ungrouped:
            known.ungrouped = False
            return ""
        self.expire()
        try:
            obj = await self._context.kube.get(PODS, args.podName, namespace=args.podNamespace)
            pod = self._context.parse(obj)
            name = pod.group
            if name is None or pod_state(obj).stage is not Stage.PENDING:
                return ""
            if pod.foreign_scheduler or pod.request is None:
                return ""  # the binder says why it refuses the pod
            group = await self._groups.read(name, pod)
        except NotFound:
            return ""  # the binder reports it
        except LaminaError as error:
            return str(error)
        needed = group.needed - len(self._planner.bound_members(group))
        if needed <= 0:
            return ""
        if self._gangs.binding(name) is None:
            plan = self._plan_for(name, group, pod, args.node)
            if isinstance(plan, str):
                return plan
            try:
                self._gangs.bind(name, group, plan, needed)
            except DoesNotFit as error:
                return str(error)
        elif refusal := self._move_place(name, args, pod, pod.request):
            return refusal
        return await self._gangs.wait_for_members(name, args.podUID)

    async def companions(self, pod: ParsedPod) -> Callable[[str], list[PodRequest] | None]:
        """By node, the requests that must fit there together with the pod, so that its group is complete.

        None for a node where evictions do not help the group. Empty for a pod in no group, and for one whose group
        holds places already. Raises Outside.
        """
        name = pod.group
        if name is None or self._gangs.binding(name) is not None:
            return lambda node: []
        try:
            group = await self._groups.read(name, pod)
        except BadInput:
            return lambda node: None
        if len(self._planner.bound_members(group)) >= group.needed:
            return lambda node: []
        return self._planner.companions(group, pod, self._gangs.allowed(name))

    async def lacking(self, name: GroupName, pod: ParsedPod) -> Lacking | None:
        """The members for which pods could be evicted, `pod` among them. Raises Outside.

        None where the group has places or is waiting for other things than room.
        """
        gang = self._gangs.get(name)
        if gang is None or gang.binding is not None:
            return None
        try:
            group = await self._groups.read(name, pod)
        except BadInput:
            return None
        if self._gangs.plan_in_force(gang):
            return None
        return self._planner.lacking(name, group, pod, gang.allowed)

    def restore_place(self, args: BindArgs) -> None:
        """After a failed binding, hold the pod's place again, because the other members rely on it."""
        self._gangs.restore_place(args)

    def expire(self) -> None:
        """Release the places of groups whose time is up, and forget groups that are placed."""
        now = self._context.now()
        for name, reason in self._gangs.expire(now).items():
            self._paused[name] = now + PAUSE_S, reason
            log.warning("%s", reason)
        self._paused = {name: pause for name, pause in self._paused.items() if pause[0] > now}
        self._refusals = {name: refusal for name, refusal in self._refusals.items() if name in self._gangs}

    def _plan_for(self, name: GroupName, group: PodGroup, pod: ParsedPod, node: str) -> GroupPlan | str:
        """The plan in force if it has the pod on this node, or another one, or why there is none."""
        gang = self._gangs.get(name)
        if gang is not None:
            plan = self._gangs.plan_in_force(gang)
            if pod.uid in plan and plan[pod.uid].node == node:
                return plan
            self._gangs.drop_plan(gang)
        return self._plan(name, group, pod, [node])

    def _plan(self, name: GroupName, group: PodGroup, first: ParsedPod, nodes: list[str]) -> GroupPlan | str:
        """Places for as many members as are needed, `first` on one of `nodes`; or why there are none."""
        if name in self._paused and self._paused[name][0] > self._context.now():
            return self._paused[name][1]
        # Nothing that a plan depends on has changed as long as no node has, and the group was not read again.
        known = self._refusals.get(name)
        question = RefusedPlan(self._context.cluster_state.table.stamp, group, kind_of(first), nodes)
        if known is not None and known[0] == question:
            return known[1]
        plan = self._planner.plan(name, group, first, nodes, self._gangs.allowed(name))
        if isinstance(plan, NoPlan):
            self._refusals[name] = question, plan.reason
            if plan.for_s:
                self._paused[name] = self._context.now() + plan.for_s, plan.reason
            return plan.reason
        return plan

    def _move_place(self, name: GroupName, args: BindArgs, pod: ParsedPod, request: PodRequest) -> str:
        """Hold the pod's place on the node where it is to be bound. Returns why that is impossible, or nothing."""
        if self._ledger.totals.holds(args.podUID, args.node):
            return ""
        placement = self._scheduler.place(pod, request, args.node)
        if not isinstance(placement, PodPlacement):
            return f"node {args.node} has no place for the pod next to those held for its group"
        try:
            self._gangs.move_place(name, args, MemberPlace(args.node, taken_by(placement.containers)))
        except DoesNotFit as error:
            return str(error)
        return ""


def plan_basis(context: Context, scheduler: Scheduler, nominated: NominatedPods) -> PlanBasis:
    """What plans rest on in the controller: the ledger as it is, and the answers of filter."""
    return PlanBasis(
        context.cluster_state,
        scheduler.rules,
        lambda pod, nodes: scheduler.filter(pod, nodes).fitting,
        nominated.closed_to,
        context.now,
        scheduler.packing,
    )


def _only(result: FilterResult, node: str) -> FilterResult:
    others = {name: _ELSEWHERE for name in result.fitting if name != node}
    return FilterResult(fitting=[node], failed={**result.failed, **others}, unresolvable=result.unresolvable)


def _nominated_alone(pod: ParsedPod, result: FilterResult) -> bool:
    """Whether kube-scheduler asks about the nominated node of the pod alone. Then it asks about all of them next."""
    return [*result.fitting, *result.failed] == [pod.nominated_node]


def _refuse_all(result: FilterResult, reason: str) -> FilterResult:
    failed = {**result.failed, **dict.fromkeys(result.fitting, reason)}
    return FilterResult(fitting=[], failed=failed, unresolvable=result.unresolvable, summary=reason, cause="pod_group")
