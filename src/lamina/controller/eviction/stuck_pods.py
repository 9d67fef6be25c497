"""Ends pods that wait on their node for a GPU that they cannot get, so that the scheduler can place others.

A pod that is bound cannot be placed again. One whose claim exceeds a quota holds a GPU without using it; one whose
GPU was taken by both doors in the same moment waits as long as the other one runs. After `STUCK_S` such a pod is
evicted, and its owner makes another one, which the gate, the slices or the ledger keep from the same place.

Everything follows from what kube-scheduler, the ledger and pods say. What an agent says matters for its own node only:
that it has prepared a claim. A pod of which a container has started is never ended here.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lamina.controller.context import Context
from lamina.controller.eviction.candidates import FoundSince
from lamina.controller.eviction.evictor import Evictor
from lamina.core.gpus import Inventory
from lamina.ledger.claim_usage import ClaimUsage
from lamina.ledger.observed_claims import ObservedClaim
from lamina.ledger.pod_stages import Stage
from lamina.ledger.ungranted_pods import started_containers
from lamina.ports.kube import PODS

STUCK_S = 60.0
EVERY_S = 5.0


class StuckPod(NamedTuple):
    """A bound pod that cannot start, and why."""

    uid: str
    reason: str


class StuckPods:
    """Those of the cluster."""

    def __init__(self, context: Context, evictor: Evictor, usage: ClaimUsage) -> None:
        self._context = context
        self._evictor = evictor
        self._usage = usage
        self._found = FoundSince()

    async def reconcile(self) -> None:
        """Evict what has been stuck for long. Raises Outside."""
        found = {each.uid: each for each in self.find()} if self._evictor.leading() else {}
        now = self._context.now()
        self._found.observe(found, now)
        due = {uid for uid in found if self._found.seconds(uid, now) >= STUCK_S}
        if not due:
            return
        for pod in (await self._context.kube.list(PODS)).items:
            meta = pod["metadata"]
            started = any(started_containers(pod.get("status") or {}))
            if meta["uid"] not in due or meta.get("deletionTimestamp") or started:
                continue
            message = f"Evicted, because {found[meta['uid']].reason}"
            await self._evictor.try_evict(pod, "ClaimCannotStart", message, warning=True)

    def find(self) -> Iterator[StuckPod]:
        """The pods that are stuck now."""
        ledger, claims = self._context.ledger, list(self._context.cluster_state.claims)
        for node in ledger.nodes():
            if inventory := ledger.inventory(node):
                here = [claim for claim in claims if claim.gpus.get(node)]
                prepared = {claim.uid for claim in inventory.claims}
                for claim in here:
                    if claim.uid in prepared:
                        yield from self._granted(claim, inventory)
                    elif reason := self._refusal(claim, inventory):
                        yield from (StuckPod(uid, reason) for uid in claim.pods if self._is_on(uid, node))

    def _refusal(self, claim: ObservedClaim, inventory: Inventory) -> str:
        """Why the agent of the node cannot prepare an allocated claim."""
        if self._usage.has_quota(claim.namespace) and (reason := self._usage.excess(claim.namespace, [claim], ())):
            return reason
        holders = self._holders(inventory.node)
        units = [gpu for gpu in inventory.gpus if gpu.number in claim.gpus[inventory.node] and gpu.uuid in holders]
        return f"claim {claim} was allocated GPU {units[0].index}, which a pod has by a grant" if units else ""

    def _granted(self, claim: ObservedClaim, inventory: Inventory) -> Iterator[StuckPod]:
        """Pods that wait for a GPU of a prepared claim."""
        holders = self._holders(inventory.node)
        for gpu in inventory.gpus:
            if gpu.number in claim.gpus[inventory.node]:
                for uid in holders.get(gpu.uuid, ()):
                    if self._is_on(uid, inventory.node) and not self._context.ledger.has_started(uid):
                        yield StuckPod(uid, f"it was granted GPU {gpu.index}, which claim {claim} has")

    def _holders(self, node: str) -> Mapping[str, list[str]]:
        """The pods with grants by GPU."""
        found: dict[str, list[str]] = {}
        for record in self._context.ledger.records_on(node):
            for gpu in {share.gpu for container in record.grant.containers for share in container.shares}:
                found.setdefault(gpu, []).append(record.grant.pod_uid)
        return found

    def _is_on(self, uid: str, node: str) -> bool:
        pod = self._context.ledger.pod(uid)
        return pod.stage is Stage.BOUND and pod.node == node
