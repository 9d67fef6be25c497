"""Prepares claims before their pods are bound to the node, so that the scheduler can try another one if that fails.

The scheduler allocates a claim and waits for the conditions of its devices. What makes a claim wait here, such as
programs of an earlier one, may pass within `PATIENCE_S`; after that, and at once for what is impossible, the conditions
say why the claim cannot be prepared. A claim that is allocated somewhere else then, or nowhere, is released here,
unless kubelet has asked for it. The scheduler would choose the same device again, so a GPU that refuses MIG or MPS
has a taint for a while.
"""

import asyncio
import logging
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.agent.resource_claims.preparer import ClaimPreparer
from lamina.agent.resource_claims.unit import ClaimRef
from lamina.dra.claims import allocated
from lamina.dra.conditions import awaited, reported_devices
from lamina.errors import LaminaError, NotYet, Outside
from lamina.ports.kube import RESOURCE_CLAIMS, NotFound, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED, trimmed_to
from lamina.ports.kube.moments import rfc3339
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

PATIENCE_S = 10.0
"""A claim may be allocated a few seconds before the last one that had the device is unprepared."""
LOOK_S = 0.5
_TRIM = trimmed_to("status.allocation", "status.devices")


class _Waiting(NamedTuple):
    """A claim for which the scheduler waits, since when."""

    ref: ClaimRef
    since: float


class ClaimBinding:
    """The claims of one node."""

    def __init__(self, node: NodeContext, preparer: ClaimPreparer) -> None:
        self._node = node
        self._preparer = preparer
        self._waiting: dict[str, _Waiting] = {}
        self._gone: set[str] = set()

    async def run(self) -> None:
        """Follow all claims, as their node is not one of the fields by which the API server can select."""
        failures = FailureLog(log, "Cannot report that claims are prepared: %s")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(poll(self.reconcile, self._node.clock, every_s=LOOK_S, failures=failures))

    async def _follow(self) -> None:
        async for kind, claim in follow(self._node.kube, self._node.clock, RESOURCE_CLAIMS, trim=_TRIM):
            if kind != SYNCED:
                self.observe(claim, gone=kind == DELETED)

    def observe(self, claim: Object, *, gone: bool = False) -> None:
        """The claim is as given, or gone."""
        meta = claim["metadata"]
        uid = meta["uid"]
        if not gone and self._awaited(claim):
            ref = ClaimRef(meta["namespace"], meta["name"], uid)
            self._waiting.setdefault(uid, _Waiting(ref, self._node.clock.monotonic()))
        else:
            self._waiting.pop(uid, None)
        self._gone.discard(uid)
        if self._node.record.claims.get(uid) is not None and (gone or not self._is_here(claim)):
            self._gone.add(uid)

    async def reconcile(self) -> None:
        """Prepare what waits, and release what is not wanted any more. Raises Outside."""
        for uid, waiting in list(self._waiting.items()):
            with self._node.aside.around("claim to prepare", str(waiting.ref), passing=Outside):
                if await self._settle(waiting):
                    self._waiting.pop(uid, None)
        for uid in list(self._gone):
            if await self._release(uid):
                self._gone.discard(uid)

    async def _settle(self, waiting: _Waiting) -> bool:
        """Prepare the claim and report that. Returns whether there is nothing left to do."""
        failure = ""
        try:
            await self._preparer.prepare(waiting.ref, asked=False)
        except (NotYet, Outside) as error:
            if self._node.clock.monotonic() - waiting.since < PATIENCE_S:
                log.info("Claim %s is not prepared yet: %s", waiting.ref, error)
                return False
            failure = str(error)
        except LaminaError as error:
            failure = str(error)
        if failure:
            log.warning("Claim %s cannot be prepared, so that the scheduler tries again: %s", waiting.ref, failure)
            await self._release(waiting.ref.uid)
        await self._report(waiting.ref, failure)
        return True

    async def _release(self, uid: str) -> bool:
        """Remove what was made for a claim. Returns whether that is done: one that shares limits with another
        claim goes after that one."""
        try:
            await self._preparer.release_unasked(uid)
        except NotYet as error:
            log.info("A claim is not released yet: %s", error)
            return False
        return True

    async def _report(self, ref: ClaimRef, failure: str) -> None:
        try:
            claim = await self._node.kube.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)
        except NotFound:
            return
        if claim["metadata"]["uid"] != ref.uid or not self._awaited(claim):
            return
        driver, pool = self._node.settings.dra_driver, self._node.node
        devices = reported_devices(claim, driver, pool, failure, rfc3339(self._node.clock.wall()))
        meta = {key: claim["metadata"][key] for key in ("uid", "resourceVersion")}
        await self._node.kube.patch(
            RESOURCE_CLAIMS,
            ref.name,
            {"metadata": meta, "status": {"devices": devices}},
            namespace=ref.namespace,
            subresource="status",
        )

    def _awaited(self, claim: Object) -> bool:
        return bool(awaited(claim, self._node.settings.dra_driver, self._node.node))

    def _is_here(self, claim: Object) -> bool:
        return bool(allocated(claim, self._node.settings.dra_driver, self._node.node))
