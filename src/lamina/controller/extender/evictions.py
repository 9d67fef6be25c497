"""Preemption by the controller, for pods that lack GPU memory or compute alone.

kube-scheduler up to 1.36 asks about preemption only on nodes where it would evict pods for what it counts itself. So
for a pod that fits nowhere by its GPUs, the leader chooses victims by the rules of the preempt verb, on the nodes that
kube-scheduler offered to filter, and evicts them through the eviction API. Pods that a PodDisruptionBudget protects
stay. A refused eviction ends the plan.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from lamina.controller.context import Context
from lamina.controller.extender.preemption import EvictionPlan, Preemption
from lamina.controller.ledger.pod_stages import Stage, pod_state
from lamina.controller.pods import ParsedPod
from lamina.controller.scheduling.decisions import FilterResult
from lamina.controller.scheduling.nominated_pods import NominatedPods, Nomination
from lamina.errors import Outside
from lamina.ports.kube import PODS, EventRecorder, NotFound, Object

log = logging.getLogger(__name__)

EVERY_S = 1.0
SETTLED_S = 2.0
"""How long a pod waits before others are evicted: kube-scheduler may evict for it itself, or room may come."""
PAUSE_S = 60.0
"""How long no pod is evicted for one whose plan was ended."""
MOST_PODS, MOST_NODES = 100, 50
"""Pods that are remembered, and nodes that are compared for one."""
_GRACE_S, _SPARE_S = 30, 60.0
"""The grace period of a pod that names none, and how much longer than the victims' the room is held."""


class _Refused(NamedTuple):
    pod: ParsedPod
    nodes: tuple[str, ...]
    """Where the pod lacks what other pods hold."""
    since: float


class Evictions:
    """Evicts for one pod after another. `leading` says whether this replica may write."""

    def __init__(
        self,
        context: Context,
        preemption: Preemption,
        nominated: NominatedPods,
        events: EventRecorder,
        leading: Callable[[], bool],
    ) -> None:
        self._context = context
        self._kube = context.kube
        self._preemption = preemption
        self._nominated = nominated
        self._events = events
        self._leading = leading
        self._refused: dict[str, _Refused] = {}
        self._paused: dict[str, float] = {}
        """By UID, until when."""
        self._written: dict[str, str] = {}
        """By UID, the node for which this replica nominated the pod last."""

    def observe(self, pod: ParsedPod, result: FilterResult) -> None:
        """The filter has answered. A pod is remembered while it fits nowhere, and others could make room."""
        before = self._refused.pop(pod.uid, None)
        if result.fitting or not result.failed or result.error or not pod.uid or pod.request is None:
            return
        if pod.group is not None or (pod.obj.get("spec") or {}).get("preemptionPolicy") == "Never":
            return
        since = before.since if before is not None else self._context.now()
        self._refused[pod.uid] = _Refused(pod, tuple(result.failed), since)
        if len(self._refused) > MOST_PODS:
            del self._refused[min(self._refused, key=lambda uid: self._refused[uid].pod.priority)]

    async def step(self) -> None:
        """Evict for the most important pod that has waited long enough. Raises Outside for what cannot be asked."""
        now = self._context.now()
        self._paused = {uid: until for uid, until in self._paused.items() if until > now}
        if not self._leading():
            self._refused.clear()
            return
        ready = [each for each in self._refused.values() if each.since + SETTLED_S <= now]
        for refused in sorted(ready, key=lambda each: (-each.pod.priority, each.since)):
            del self._refused[refused.pod.uid]
            if await self._make_room(refused):
                return

    async def _make_room(self, refused: _Refused) -> bool:
        """Whether pods were evicted for the pod."""
        uid = refused.pod.uid
        if self._nominated.holds(uid) or uid in self._paused or self._context.ledger.pod(uid).stage > Stage.PENDING:
            return False
        pod = await self._read(refused.pod)
        if pod is None or pod.request is None:
            return False
        nodes = [node for node in refused.nodes if self._could_fit(pod, node)][:MOST_NODES]
        plan = await self._preemption.plan(pod, nodes)
        if plan is None or not self._leading():
            return False
        grace = max(int(each["spec"].get("terminationGracePeriodSeconds") or _GRACE_S) for each in plan.victims)
        victims = frozenset(str(each["metadata"]["uid"]) for each in plan.victims)
        until = self._context.now() + grace + _SPARE_S
        self._nominated.nominate(Nomination(pod, pod.request, plan.node, victims, until))
        try:
            await self._write_nominated(pod, plan.node)
            await self._evict(pod, plan)
        except Outside as error:
            await self._end(pod, plan, error)
        return True

    def _could_fit(self, pod: ParsedPod, node: str) -> bool:
        """Whether the pod would fit if the node were empty."""
        capacity = self._context.capacity
        everything = frozenset(capacity.ledger.holdings.pods_on(node))
        return pod.request is not None and capacity.fits_without(node, [pod.request], everything)

    async def _read(self, known: ParsedPod) -> ParsedPod | None:
        """The pod as it is now, if it still waits and kube-scheduler has not made room for it."""
        try:
            obj = await self._kube.get(PODS, known.name, namespace=known.namespace)
        except NotFound:
            return None
        status = obj.get("status") or {}
        waits = pod_state(obj).stage is Stage.PENDING and not obj["metadata"].get("deletionTimestamp")
        by_others = status.get("nominatedNodeName") not in (None, "", self._written.get(known.uid))
        if obj["metadata"]["uid"] != known.uid or not waits or by_others:
            return None
        return self._context.parse(obj)

    async def _evict(self, pod: ParsedPod, plan: EvictionPlan) -> None:
        """Raises Outside where an eviction is refused, or this replica no longer leads."""
        for victim in plan.victims:
            if not self._leading():
                raise Outside("this replica of the controller is not the leader")
            meta = victim["metadata"]
            try:
                await self._kube.evict(meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue
            log.info("Evicted pod %s/%s of node %s for %s", meta["namespace"], meta["name"], plan.node, _name(pod))
            await self._events.record(PODS, victim, "Preempted", f"Preempted by {_name(pod)} on node {plan.node}")

    async def _end(self, pod: ParsedPod, plan: EvictionPlan, error: Outside) -> None:
        """Give the room back, and evict nothing for the pod for a while."""
        self._nominated.withdraw(pod.uid)
        self._paused[pod.uid] = self._context.now() + PAUSE_S
        message = f"Making room on node {plan.node} was ended: {error}"
        log.warning("%s for %s", message, _name(pod))
        await self._events.record(PODS, pod.obj, "PreemptionEnded", message, warning=True)
        if self._leading():
            await self._write_nominated(pod, None)

    async def _write_nominated(self, pod: ParsedPod, node: str | None) -> None:
        self._written.pop(pod.uid, None)
        if node is not None:
            self._written[pod.uid] = node
            if len(self._written) > MOST_PODS:
                del self._written[next(iter(self._written))]
        body: Object = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._kube.patch(PODS, pod.name, body, namespace=pod.namespace, subresource="status")


def _name(pod: ParsedPod) -> str:
    return f"{pod.namespace}/{pod.name}"
