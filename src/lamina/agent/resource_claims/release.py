"""Releases claims that kubelet has forgotten, as after its directory was emptied.

Kubelet unprepares a claim when its last pod has ended, also if the claim is gone. So a claim counts as forgotten only
if Kubernetes has had no such claim, or no allocation of it here, for `FORGOTTEN_S`, and no process of its pods runs.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from lamina.agent.context import NodeContext
from lamina.agent.resource_claims.preparer import ClaimPreparer
from lamina.agent.state.holdings import PreparedClaim
from lamina.dra.claims import read_claim
from lamina.errors import NotYet
from lamina.ports import cgroups
from lamina.ports.kube import RESOURCE_CLAIMS, NotFound
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

FORGOTTEN_S = 600.0
_EVERY_S = 60.0


class ClaimReleaser:
    """Sweeps the claims of one node."""

    def __init__(self, node: NodeContext, preparer: ClaimPreparer, root: Path = cgroups.ROOT) -> None:
        """`root` is where the tree of cgroups is mounted."""
        self._node = node
        self._preparer = preparer
        self._root = root
        self._gone_since: Mapping[str, float] = {}
        self._pods: dict[str, set[str]] = {}

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot release deleted claims: %s")
        await poll(self.reconcile, self._node.clock, every_s=_EVERY_S, delay_s=_EVERY_S, failures=failures)

    async def reconcile(self) -> None:
        """Release what can be released now. Raises Outside when the API server does not answer."""
        now, gone = self._node.clock.monotonic(), {}
        for claim in self._node.record.claims.values():
            if not await self._is_allocated(claim):
                gone[claim.uid] = self._gone_since.get(claim.uid, now)
        self._gone_since = gone
        for claim in self._node.record.claims.values():
            if now - gone.get(claim.uid, now) >= FORGOTTEN_S and not self._runs(claim):
                with self._node.aside.around("claim to release", str(claim), passing=NotYet):
                    log.warning("Kubelet has forgotten claim %s, which is gone; releasing it", claim)
                    await self._release(claim)

    async def _release(self, claim: PreparedClaim) -> None:
        try:
            await self._preparer.release(claim)
        except NotYet as error:
            log.info("Not yet: %s", error)

    async def _is_allocated(self, claim: PreparedClaim) -> bool:
        try:
            found = await self._node.kube.get(RESOURCE_CLAIMS, claim.name, namespace=claim.namespace)
        except NotFound:
            return False
        if found["metadata"]["uid"] != claim.uid:
            return False
        reserved = (found.get("status") or {}).get("reservedFor") or ()
        self._pods.setdefault(claim.uid, set()).update(each["uid"] for each in reserved)
        try:
            read_claim(found, self._node.settings.dra_driver, self._node.node)
        except NotYet:
            return False
        return True

    def _runs(self, claim: PreparedClaim) -> bool:
        pods = {*claim.pods, *self._pods.get(claim.uid, ())}
        return any(cgroups.pod_has_processes(uid, self._root) for uid in pods)
