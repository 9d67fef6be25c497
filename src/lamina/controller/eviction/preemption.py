"""Preemption by the controller, for pods that lack GPU memory or compute alone.

kube-scheduler up to 1.36 asks about preemption only on nodes where it would evict pods for what it counts itself. So
for a pod that fits nowhere by its GPUs, the leader chooses victims by the rules of the preempt verb, on the nodes that
kube-scheduler offered to filter, and evicts them through the eviction API. For a pod group it does so on as many nodes
as the members need. Pods that a PodDisruptionBudget protects stay. A refused eviction ends the plan.
"""

import logging
from itertools import islice
from typing import NamedTuple

from lamina.controller.context import Context
from lamina.controller.eviction.candidates import EvictionPlan
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.eviction.group_victims import GroupVictims
from lamina.controller.eviction.victims import PodVictims
from lamina.controller.scheduling.nominated_pods import NominatedPods, Nomination
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.errors import Outside
from lamina.ledger.pod_stages import Stage, pod_state
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import PODS, NotFound, Object

log = logging.getLogger(__name__)

EVERY_S = 1.0
SETTLED_S = 2.0
"""How long a pod waits before others are evicted: kube-scheduler may evict for it itself, or room may come."""
PAUSE_S = 60.0
"""How long no pod is evicted for a pod or a group whose plan was ended, nor for a group that no eviction helps."""
MAX_PODS, MAX_NODES = 100, 50
"""Pods and groups that are remembered, and nodes that are compared for one pod."""
_GRACE_S, _SPARE_S = 30, 60.0
"""The grace period of a pod that names none, and how much longer than the victims' the room is held."""


class _Refused(NamedTuple):
    """A pod, or the member of a group that was refused last."""

    pod: ParsedPod
    nodes: tuple[str, ...]
    """Where the pod lacks what other pods hold."""
    since: float

    @property
    def requester(self) -> str:
        return _requester(self.pod)


class Preemption:
    """Evicts for one pod or group after another."""

    def __init__(
        self,
        context: Context,
        evictor: Evictor,
        victims: PodVictims,
        groups: GroupVictims,
        nominated: NominatedPods,
    ) -> None:
        self._context = context
        self._kube = context.kube
        self._evictor = evictor
        self._victims = victims
        self._groups = groups
        self._nominated = nominated
        self._refused: dict[str, _Refused] = {}
        """By requester, as what follows."""
        self._paused: dict[str, float] = {}
        """Until when."""

    def observe(self, pod: ParsedPod, result: FilterResult) -> None:
        """The filter has answered. A pod is remembered while it fits nowhere, and others could make room."""
        requester = _requester(pod)
        before = self._refused.pop(requester, None)
        if result.fitting or not result.failed or result.error or not pod.uid or pod.request is None:
            return
        if pod.never_preempts:
            return
        since = before.since if before is not None else self._context.now()
        self._refused[requester] = _Refused(pod, tuple(result.failed), since)
        if len(self._refused) > MAX_PODS:
            del self._refused[min(self._refused, key=lambda each: self._refused[each].pod.priority)]

    async def reconcile(self) -> None:
        """Evict for the most important pod that has waited long enough. Raises Outside for what cannot be asked."""
        now = self._context.now()
        self._paused = {uid: until for uid, until in self._paused.items() if until > now}
        if not self._evictor.leading():
            self._refused.clear()
            return
        waits_s = max(SETTLED_S, self._context.configuration.value.preemption.delay_seconds)
        ready = [each for each in self._refused.values() if each.since + waits_s <= now]
        for refused in sorted(ready, key=lambda each: (-each.pod.priority, each.since)):
            self._refused.pop(refused.requester, None)  # the last plan awaited answers; filters went on meanwhile
            if await self._make_room(refused):
                return

    async def _make_room(self, refused: _Refused) -> bool:
        """Whether pods were evicted for the pod or its group."""
        if refused.requester in self._paused:
            return False
        plan = await (self._plan_for_pod(refused) if refused.pod.group is None else self._plan_for_group(refused))
        if plan is None or not self._evictor.leading():
            return False
        self._hold(plan)
        try:
            for pod, node in plan.places:
                await self._write_nominated(pod, node)
            await self._evict(refused.pod, plan)
        except Outside as error:
            await self._end(refused.pod, plan, error)
        return True

    async def _plan_for_pod(self, refused: _Refused) -> EvictionPlan | None:
        uid = refused.pod.uid
        if self._nominated.holds(uid) or self._context.ledger.pod(uid).stage > Stage.PENDING:
            return None
        pod = await self._read(refused.pod)
        if pod is None or pod.request is None or self._nominated.gets_room(pod):
            return None
        request, capacity = self._context.rules.bounded(pod, pod.request), self._context.cluster_state
        nodes = islice((node for node in refused.nodes if capacity.fits_empty(node, request)), MAX_NODES)
        return await self._victims.plan(pod, list(nodes))

    async def _plan_for_group(self, refused: _Refused) -> EvictionPlan | None:
        group = refused.pod.group
        pod = await self._read(refused.pod)
        if pod is None or group is None or pod.group != group or self._nominated.holds(pod.uid):
            return None
        lacking = await self._groups.lacking(group, pod)
        plan = None if lacking is None else await self._groups.plan(lacking)
        if lacking is not None and plan is None:
            self._paused[refused.requester] = self._context.now() + PAUSE_S
        return plan

    def _hold(self, plan: EvictionPlan) -> None:
        """Hold the room until the victims are gone."""
        victims = [victim for there in plan.victims.values() for victim in there]
        grace = max(int(each["spec"].get("terminationGracePeriodSeconds") or _GRACE_S) for each in victims)
        until = self._context.now() + grace + _SPARE_S
        for pod, node in plan.places:
            if pod.request is not None:
                leaving = frozenset(str(each["metadata"]["uid"]) for each in plan.victims.get(node, ()))
                self._nominated.nominate(Nomination(pod, pod.request, node, leaving, until))

    async def _read(self, known: ParsedPod) -> ParsedPod | None:
        """The pod as it is now, if it still waits."""
        try:
            obj = await self._kube.get(PODS, known.name, namespace=known.namespace)
        except NotFound:
            return None
        waits = pod_state(obj).stage is Stage.PENDING and not obj["metadata"].get("deletionTimestamp")
        return self._context.parse(obj) if obj["metadata"]["uid"] == known.uid and waits else None

    async def _evict(self, pod: ParsedPod, plan: EvictionPlan) -> None:
        """Raises Outside where an eviction is refused, or this replica no longer leads."""
        for node, victims in plan.victims.items():
            for victim in victims:
                await self._evictor.evict(victim, "Preempted", f"Preempted by {_name(pod)} on node {node}")

    async def _end(self, pod: ParsedPod, plan: EvictionPlan, error: Outside) -> None:
        """Give the room back, and evict nothing for the pod or its group for a while."""
        for member, _ in plan.places:
            self._nominated.withdraw(member.uid)
        self._paused[_requester(pod)] = self._context.now() + PAUSE_S
        nodes = list(plan.victims)
        where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes"
        message = f"Making room on {where} was ended: {error}"
        log.warning("%s for %s", message, _name(pod))
        await self._evictor.events.record(PODS, pod.obj, "PreemptionEnded", message, warning=True)
        if self._evictor.leading():
            for member, _ in plan.places:
                await self._write_nominated(member, None)

    async def _write_nominated(self, pod: ParsedPod, node: str | None) -> None:
        body: Object = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._kube.patch(PODS, pod.name, body, namespace=pod.namespace, subresource="status")


def _name(pod: ParsedPod) -> str:
    """The pod, or its group, in sentences."""
    return str(pod.group) if pod.group is not None else f"{pod.namespace}/{pod.name}"


def _requester(pod: ParsedPod) -> str:
    """What pods are evicted for: a pod by its UID, or a group."""
    return f"{pod.group.api} {pod.group}" if pod.group is not None else pod.uid
