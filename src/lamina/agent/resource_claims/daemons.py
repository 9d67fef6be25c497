"""MPS daemons of claims: one for each request that is shared by MPS, from its preparation to its removal.

The record has their claim before the first step of their start, and until the last step of their end. One that does
not answer is started again, after a growing pause, as long as its claim is prepared; its clients have failed then.
"""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mps.clients import NO_EDITS, ClientEdits, ClientLimits, client_edits
from lamina.agent.mps.lifecycle import DaemonLifecycle, Ensured, JournaledDaemon
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
        self._failures: dict[str, str] = {}
        """Why daemons that have ended cannot be started again, as it was reported last."""

    async def run(self) -> None:
        """Reconcile forever."""
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s)

    async def start(self, claim: PreparedClaim) -> None:
        """Have the daemons of a recorded claim run with their limits. Raises NotYet with the processes that are in the
        way, and Outside."""
        for daemon in daemons_of(claim):
            self._lifecycle.backoffs[daemon.key].end_pause()
            await self._lifecycle.ensure(daemon, partial(_hindrance, daemon))

    async def stop(self, claim: PreparedClaim) -> None:
        """End the daemons of a claim whose programs have ended. Raises Outside."""
        for daemon in daemons_of(claim):
            self._failures.pop(daemon.key, None)
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
            ensured = await self._lifecycle.ensure(daemon, lambda pids: self._hindrance(claim, daemon, pids))
        except (MpsServiceDown, Hangs):
            return  # it may run, and have clients
        except (NotYet, Outside) as error:
            if self._may_run(claim) and self._failures.get(daemon.key) != str(error):
                self._failures[daemon.key] = str(error)
                log.warning("Cannot start MPS for claim %s again: %s", claim, error)
                message = f"the MPS daemon has ended and cannot be started again: {error}"
                await self._report(claim, "MpsFailed", message)
            return
        if ensured is not Ensured.PAUSES:
            self._failures.pop(daemon.key, None)
        if ensured is Ensured.STARTED:
            await self._report(claim, "MpsRestarted", "the MPS daemon had ended; its clients have failed")

    def _hindrance(self, claim: PreparedClaim, daemon: JournaledDaemon, pids: Sequence[str]) -> str:
        return (
            _hindrance(daemon, pids) if self._may_run(claim) else f"{daemon.gpu} is unhealthy, or the claim has ended"
        )

    def _may_run(self, claim: PreparedClaim) -> bool:
        """Whether its devices are healthy and the claim still prepared: asking the daemon took time."""
        observed, current = self._offers.state.units, self._node.record.claims.get(claim.uid)
        units = [share.gpu for each in claim.requests if each.mps is not None for share in each.grant.shares]
        healthy = all(unit in observed and observed[unit].healthy for unit in units)
        return healthy and current is not None and current.ready

    async def _report(self, claim: PreparedClaim, reason: str, message: str) -> None:
        about = {"metadata": {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}}
        await self._node.events.record(RESOURCE_CLAIMS, about, reason, message, warning=True)


def mps_edits(claim: PreparedClaim, request: PreparedRequest) -> ClientEdits:
    """What the containers of a request need to be clients of its daemon."""
    return NO_EDITS if request.mps is None else client_edits(request.name, _daemon(claim, request, request.mps).home)


def daemons_of(claim: PreparedClaim) -> list[JournaledDaemon]:
    """The daemons of a claim."""
    return [_daemon(claim, each, each.mps) for each in claim.requests if each.mps is not None]


def _hindrance(daemon: JournaledDaemon, pids: Sequence[str]) -> str:
    return (
        f"{daemon.gpu} is in use by process {', '.join(pids)}; MPS for the claim waits until that ends" if pids else ""
    )


def _daemon(claim: PreparedClaim, request: PreparedRequest, mps: PreparedMps) -> JournaledDaemon:
    name = cdi_name(claim.uid, request.name)
    return JournaledDaemon(
        gpu=mps.gpu,
        root=str(Path(mps.root) / "claims" / name),
        limits=ClientLimits(memory_mib=mps.memory_mib, threads_percent=mps.threads_percent),
        exclusive=mps.exclusive,
        request=name,
    )
