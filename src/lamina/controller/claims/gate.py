"""Lifts the scheduling gate of pods with claims, once their claims are within the quotas of the namespace.

Kubernetes makes the claims of a pod that has a gate, and kube-scheduler allocates none of them, so a claim in excess of
a quota holds no GPU. All sources of claims are alike here: templates, claims by name, and claims that Lamina generated.
Pods wait in the order in which they were created.
"""

import logging
from collections.abc import Callable

from lamina.controller.context import Context
from lamina.dialects.claim_gate import GATE
from lamina.ledger.claim_usage import ClaimUsage
from lamina.ledger.gated_pods import GatedPod, claims_to_allocate, waits_for_quota
from lamina.ports.kube import PODS, Conflict, EventRecorder, NotFound, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED, trimmed_to

log = logging.getLogger(__name__)

EVERY_S = 0.5
_TRIM = trimmed_to(
    "spec.resourceClaims", "spec.schedulingGates", "spec.nodeName", "status.phase", "status.resourceClaimStatuses"
)


class ClaimGate:
    """The gates of the cluster. Only a replica that leads (`leading`) lifts them."""

    def __init__(self, context: Context, usage: ClaimUsage, events: EventRecorder, leading: Callable[[], bool]) -> None:
        self._context = context
        self._usage = usage
        self._events = events
        self._leading = leading
        self._pods: dict[str, GatedPod] = {}
        self._reported: dict[str, str] = {}
        self._synced = False

    async def run(self) -> None:
        """Follow the pods that admission gave the gate."""
        async for kind, pod in follow(self._context.kube, self._context.clock, PODS, labels=GATE, trim=_TRIM):
            if kind == SYNCED:
                self._synced = True
            else:
                self.observe(pod, gone=kind == DELETED)

    def observe(self, pod: Object, *, gone: bool = False) -> None:
        """The pod is as given, or gone."""
        uid, waiting = pod["metadata"]["uid"], None if gone else GatedPod.of(pod)
        if waiting is None:
            self._pods.pop(uid, None)
            self._reported.pop(uid, None)
            return
        self._pods[uid] = waiting

    async def step(self) -> None:
        """Lift what can be lifted. Raises Outside."""
        if not (self._leading() and self._synced):
            return
        for uid, pod in list(self._pods.items()):
            if GATE in pod.gates:
                with self._context.set_aside.around("gate of a pod", f"{pod.namespace}/{pod.name}"):
                    await self._look(uid, pod)

    async def _look(self, uid: str, pod: GatedPod) -> None:
        if self._usage.has_quota(pod.namespace):
            claims = self._context.cluster_state.claims.named(pod.namespace, pod.claims)
            if pod.unmade or len(claims) < len(set(pod.claims)):
                return  # the scheduler would wait for them too
            scheduled = claims_to_allocate(pod.namespace, self._pods.values(), self._context.cluster_state.claims)
            if reason := self._usage.excess(pod.namespace, claims, scheduled):
                await self._report(uid, pod, reason)
                return
        await self._lift(uid, pod)

    async def _lift(self, uid: str, pod: GatedPod) -> None:
        kept = [{"name": name} for name in pod.gates if name != GATE]
        body = {"metadata": {"uid": uid, "resourceVersion": pod.version}, "spec": {"schedulingGates": kept}}
        try:
            await self._context.kube.patch(PODS, pod.name, body, namespace=pod.namespace)
        except (Conflict, NotFound):
            return  # the watch reports what it is now
        self._reported.pop(uid, None)
        if uid in self._pods:
            self._pods[uid] = pod._replace(gates=tuple(each["name"] for each in kept))

    async def _report(self, uid: str, pod: GatedPod, reason: str) -> None:
        if self._reported.get(uid) != reason:
            self._reported[uid] = reason
            about = {"metadata": {"namespace": pod.namespace, "name": pod.name, "uid": uid}}
            await self._events.record(PODS, about, "ClaimOverQuota", f"It {waits_for_quota(reason)}", warning=True)
