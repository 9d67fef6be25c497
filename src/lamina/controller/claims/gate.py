"""Lifts the scheduling gate of pods with claims, once their claims are within the quotas of the namespace.

Kubernetes makes the claims of a pod that has a gate, and kube-scheduler allocates none of them, so a claim in excess of
a quota holds no GPU. All sources of claims are alike here: templates, claims by name, and claims that Lamina generated.
Pods wait in the order in which they were created.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from lamina.controller.context import Context
from lamina.controller.ledger.observed_claims import ObservedClaim
from lamina.controller.scheduling.claim_usage import ClaimUsage
from lamina.dialects.claim_gate import GATE
from lamina.dra.containers import claims_by_entry
from lamina.model.pod_status import is_over
from lamina.ports.kube import PODS, Conflict, EventRecorder, NotFound, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED

log = logging.getLogger(__name__)

EVERY_S = 0.5


class _Waiting(NamedTuple):
    """A pod without a node. `gates` are the names of those that it has."""

    namespace: str
    name: str
    version: str
    claims: tuple[str, ...]
    unmade: bool
    gates: tuple[str, ...]


class ClaimGate:
    """The gates of the cluster. Only a replica that leads (`leading`) lifts them."""

    def __init__(self, context: Context, usage: ClaimUsage, events: EventRecorder, leading: Callable[[], bool]) -> None:
        self._context = context
        self._usage = usage
        self._events = events
        self._leading = leading
        self._pods: dict[str, _Waiting] = {}
        self._reported: dict[str, str] = {}
        self._synced = False

    async def run(self) -> None:
        """Follow the pods that admission gave the gate."""
        async for kind, pod in follow(self._context.kube, self._context.clock, PODS, labels=GATE, trim=_trim):
            if kind == SYNCED:
                self._synced = True
            else:
                self.observe(pod, gone=kind == DELETED)

    def observe(self, pod: Object, *, gone: bool = False) -> None:
        """The pod is as given, or gone."""
        meta, spec = pod["metadata"], pod["spec"]
        uid = meta["uid"]
        if gone or is_over(pod) or spec.get("nodeName"):
            self._pods.pop(uid, None)
            self._reported.pop(uid, None)
            return
        made = claims_by_entry(pod)
        self._pods[uid] = _Waiting(
            namespace=meta["namespace"],
            name=meta["name"],
            version=meta["resourceVersion"],
            claims=tuple(name for name in made.values() if name),
            unmade=not all(made.values()),
            gates=tuple(each["name"] for each in spec.get("schedulingGates") or ()),
        )

    async def step(self) -> None:
        """Lift what can be lifted. Raises Outside."""
        if not (self._leading() and self._synced):
            return
        for uid, pod in list(self._pods.items()):
            if GATE in pod.gates:
                with self._context.set_aside.around("gate of a pod", f"{pod.namespace}/{pod.name}"):
                    await self._look(uid, pod)

    async def _look(self, uid: str, pod: _Waiting) -> None:
        if self._usage.has_quota(pod.namespace):
            claims = self._claims_of(pod)
            if pod.unmade or len(claims) < len(set(pod.claims)):
                return  # the scheduler would wait for them too
            scheduled = [
                claim
                for other in self._pods.values()
                if other.namespace == pod.namespace and GATE not in other.gates
                for claim in self._claims_of(other)
            ]
            if reason := self._usage.excess(pod.namespace, claims, scheduled):
                await self._report(uid, pod, reason)
                return
        await self._lift(uid, pod)

    def _claims_of(self, pod: _Waiting) -> list[ObservedClaim]:
        return self._context.capacity.claims.named(pod.namespace, pod.claims)

    async def _lift(self, uid: str, pod: _Waiting) -> None:
        kept = [{"name": name} for name in pod.gates if name != GATE]
        body = {"metadata": {"uid": uid, "resourceVersion": pod.version}, "spec": {"schedulingGates": kept}}
        try:
            await self._context.kube.patch(PODS, pod.name, body, namespace=pod.namespace)
        except (Conflict, NotFound):
            return  # the watch reports what it is now
        self._reported.pop(uid, None)
        if uid in self._pods:
            self._pods[uid] = pod._replace(gates=tuple(each["name"] for each in kept))

    async def _report(self, uid: str, pod: _Waiting, reason: str) -> None:
        if self._reported.get(uid) != reason:
            self._reported[uid] = reason
            about = {"metadata": {"namespace": pod.namespace, "name": pod.name, "uid": uid}}
            text = f"It waits until there is room in a quota of its namespace: {reason}"
            await self._events.record(PODS, about, "ClaimOverQuota", text, warning=True)


def _trim(pod: Object) -> Object:
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    names = ("name", "namespace", "uid", "resourceVersion")
    return {
        "metadata": {key: meta.get(key) for key in names},
        "spec": {key: spec.get(key) for key in ("resourceClaims", "schedulingGates", "nodeName")},
        "status": {key: status.get(key) for key in ("phase", "resourceClaimStatuses")},
    }
