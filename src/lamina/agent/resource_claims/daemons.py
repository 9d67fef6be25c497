"""MPS daemons of claims: one for each request that is shared by MPS, from its preparation to its removal.

The record has their claim before the first step of their start, and until the last step of their end. One that does
not answer is started again, after a growing pause, as long as its claim is prepared; its clients have failed then.
"""

import logging
from pathlib import Path

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mps.clients import NO_EDITS, ClientEdits, ClientLimits, client_edits
from lamina.agent.mps.lifecycle import DaemonLifecycle, JournaledDaemon
from lamina.agent.state.holdings import PreparedClaim, PreparedMps, PreparedRequest
from lamina.dra.names import cdi_name
from lamina.errors import NotYet, Outside
from lamina.ports.kube import RESOURCE_CLAIMS
from lamina.ports.mps import Hangs, MpsServiceDown
from lamina.ports.polling import poll

log = logging.getLogger(__name__)

_KIND = "MPS daemon of a claim"


class ClaimDaemons:
    """The daemons of one node's claims. `root` is the directory of MPS for new ones."""

    def __init__(self, node: NodeContext, offers: NodeOfferStore, lifecycle: DaemonLifecycle, root: Path) -> None:
        self._node = node
        self._offers = offers
        self._lifecycle = lifecycle
        self.root = root

    async def run(self) -> None:
        """Reconcile forever."""
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s)

    async def start(self, claim: PreparedClaim) -> None:
        """Have the daemons of a recorded claim run with their limits. Raises NotYet with the processes that are in the
        way, and Outside."""
        for daemon in daemons_of(claim):
            if self._lifecycle.journal.get(daemon.key) != daemon or not await self._lifecycle.is_running(daemon):
                await self._start(daemon)

    async def stop(self, claim: PreparedClaim) -> None:
        """End the daemons of a claim whose programs have ended. Raises Outside."""
        for daemon in daemons_of(claim):
            if (known := self._lifecycle.journal.get(daemon.key)) is not None:
                await self._lifecycle.stop(known, present=known.gpu in self._offers.gpus)

    async def reconcile(self) -> None:
        """Start daemons that have ended. Raises nothing: a failure is logged and reported, and tried again."""
        for claim in self._node.record.claims.values():
            for daemon in daemons_of(claim) if claim.ready else ():
                with self._node.aside.around(_KIND, str(claim)):
                    await self._restart_ended(claim, daemon)

    async def _restart_ended(self, claim: PreparedClaim, daemon: JournaledDaemon) -> None:
        try:
            if await self._lifecycle.is_running(daemon):
                return
        except (MpsServiceDown, Hangs):
            return  # it may run, and have clients
        backoff, now = self._lifecycle.backoffs[daemon.key], self._node.clock.monotonic()
        if not backoff.may_start(now) or not self._may_run(claim):
            return
        backoff.record_start(now)
        try:
            await self._start(daemon)
        except (NotYet, Outside) as error:
            log.warning("Cannot start MPS for claim %s again: %s", claim, error)
            await self._report(claim, "MpsFailed", f"the MPS daemon has ended and cannot be started again: {error}")
        else:
            await self._report(claim, "MpsRestarted", "the MPS daemon had ended; its clients have failed")

    def _may_run(self, claim: PreparedClaim) -> bool:
        """Whether its devices are healthy and the claim still prepared: asking the daemon took time."""
        observed, current = self._offers.state.units, self._node.record.claims.get(claim.uid)
        units = [share.gpu for each in claim.requests if each.mps is not None for share in each.grant.shares]
        healthy = all(unit in observed and observed[unit].healthy for unit in units)
        return healthy and current is not None and current.ready

    async def _report(self, claim: PreparedClaim, reason: str, message: str) -> None:
        about = {"metadata": {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}}
        await self._node.events.record(RESOURCE_CLAIMS, about, reason, message, warning=True)

    async def _start(self, daemon: JournaledDaemon) -> None:
        await self._lifecycle.clear(daemon.home)
        if daemon.exclusive and (processes := await self._node.nvml.processes(daemon.gpu)):
            pids = ", ".join(str(process.pid) for process in processes)
            raise NotYet(f"{daemon.gpu} is in use by process {pids}; MPS for the claim waits until that ends")
        await self._lifecycle.start(daemon)


def mps_edits(claim: PreparedClaim, request: PreparedRequest) -> ClientEdits:
    """What the containers of a request need to be clients of its daemon."""
    return NO_EDITS if request.mps is None else client_edits(request.name, _daemon(claim, request, request.mps).home)


def daemons_of(claim: PreparedClaim) -> list[JournaledDaemon]:
    """The daemons of a claim."""
    return [_daemon(claim, each, each.mps) for each in claim.requests if each.mps is not None]


def _daemon(claim: PreparedClaim, request: PreparedRequest, mps: PreparedMps) -> JournaledDaemon:
    name = cdi_name(claim.uid, request.name)
    return JournaledDaemon(
        gpu=mps.gpu,
        root=str(Path(mps.root) / "claims" / name),
        limits=ClientLimits(memory_mib=mps.memory_mib, threads_percent=mps.threads_percent),
        exclusive=mps.exclusive,
        request=name,
    )
