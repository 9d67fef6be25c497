"""MPS daemons of claims: one for each request that is shared by MPS, from its preparation to its removal.

The record of claims is their journal: it has a daemon before the first step of its start, and until the last step of
its end. A daemon outlives its agent. One that does not answer is started again, after a growing pause, as long as its
claim is prepared; its clients have failed then.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mps.clients import NO_EDITS, ClientEdits, ClientLimits, client_edits
from lamina.agent.mps.lifecycle import DaemonLifecycle, JournaledDaemon, RestartBackoff
from lamina.agent.state.holdings import PreparedClaim, PreparedMps, PreparedRequest
from lamina.dra.names import cdi_name
from lamina.errors import NotYet, Outside
from lamina.ports.kube import RESOURCE_CLAIMS
from lamina.ports.mps import Home, Mps, MpsServiceDown
from lamina.ports.polling import poll

log = logging.getLogger(__name__)

_KIND = "MPS daemon of a claim"


class InRecord:
    """The record of claims has these daemons already."""

    def put(self, gpu: str, daemon: JournaledDaemon) -> None:
        pass

    def drop(self, gpu: str) -> None:
        pass


class ClaimDaemons:
    """The daemons of one node's claims. `root` is the directory of MPS for new ones."""

    def __init__(self, node: NodeContext, offers: NodeOfferStore, mps: Mps, root: Path) -> None:
        self._node = node
        self._offers = offers
        self._lifecycle = DaemonLifecycle(mps, node.nvml, InRecord(), node.files)
        self._backoffs: dict[str, RestartBackoff] = {}
        self.root = root

    async def run(self) -> None:
        """Reconcile forever."""
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s)

    async def start(self, claim: PreparedClaim) -> None:
        """Have the daemons of a recorded claim run with their limits. Raises NotYet with the processes that are in the
        way, and Outside."""
        for home, mps in daemon_homes(claim):
            if not await self._answers(home, mps):
                await self._start(home, mps)

    async def stop(self, claim: PreparedClaim) -> None:
        """End the daemons of a claim whose programs have ended. Raises Outside."""
        for home, mps in daemon_homes(claim):
            present = mps.exclusive and mps.gpu in self._offers.gpus
            await self._lifecycle.stop(home, present=present)
            self._node.files.remove_tree(home.root)
            self._backoffs.pop(str(home.root), None)

    async def reconcile(self) -> None:
        """Start daemons that have ended. Raises nothing: a failure is logged and reported, and tried again."""
        for claim in self._node.record.claims.values():
            for home, mps in daemon_homes(claim) if claim.ready else ():
                with self._node.aside.around(_KIND, str(claim)):
                    await self._look_at(claim, home, mps)

    async def _look_at(self, claim: PreparedClaim, home: Home, mps: PreparedMps) -> None:
        backoff, now = self._backoffs.setdefault(str(home.root), RestartBackoff()), self._node.clock.monotonic()
        try:
            if await self._answers(home, mps):
                backoff.record_success(now)
                return
        except MpsServiceDown:
            return  # the daemon may run, and have clients
        if not backoff.may_start(now) or not self._may_run(claim, mps):
            return
        backoff.record_start(now)
        try:
            await self._start(home, mps)
        except (NotYet, Outside) as error:
            log.warning("Cannot start MPS for claim %s again: %s", claim, error)
            await self._report(claim, "MpsFailed", f"the MPS daemon has ended and cannot be started again: {error}")
        else:
            await self._report(claim, "MpsRestarted", "the MPS daemon had ended; its clients have failed")

    def _may_run(self, claim: PreparedClaim, mps: PreparedMps) -> bool:
        """Whether the GPU is healthy and the claim still prepared: asking the daemon took time."""
        units = [share.gpu for each in claim.requests if each.mps == mps for share in each.grant.shares]
        observed, current = self._offers.state.units, self._node.record.claims.get(claim.uid)
        healthy = all(unit in observed and observed[unit].healthy for unit in units)
        return healthy and current is not None and current.ready

    async def _report(self, claim: PreparedClaim, reason: str, message: str) -> None:
        about = {"metadata": {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}}
        await self._node.events.record(RESOURCE_CLAIMS, about, reason, message, warning=True)

    async def _answers(self, home: Home, mps: PreparedMps) -> bool:
        """Whether the daemon runs with its limits. Raises MpsServiceDown."""
        try:
            return await self._lifecycle.limits_of(home) == _limits(mps)
        except MpsServiceDown:
            raise
        except Outside as error:
            log.debug("%s", error)
            return False

    async def _start(self, home: Home, mps: PreparedMps) -> None:
        await self._lifecycle.clear(home)
        if mps.exclusive and (processes := await self._node.nvml.processes(mps.gpu)):
            pids = ", ".join(str(process.pid) for process in processes)
            raise NotYet(f"{mps.gpu} is in use by process {pids}; MPS for the claim waits until that ends")
        await self._lifecycle.start(home, _limits(mps), exclusive=mps.exclusive)


def mps_edits(claim: PreparedClaim, request: PreparedRequest) -> ClientEdits:
    """What the containers of a request need to be clients of its daemon."""
    if request.mps is None:
        return NO_EDITS
    return client_edits(request.name, _home(claim, request.name, request.mps))


def daemon_homes(claim: PreparedClaim) -> Iterator[tuple[Home, PreparedMps]]:
    """The daemons of a claim."""
    for each in claim.requests:
        if each.mps is not None:
            yield _home(claim, each.name, each.mps), each.mps


def _home(claim: PreparedClaim, request: str, mps: PreparedMps) -> Home:
    """A directory of its own: a GPU has as many daemons as claims share it by MPS."""
    return Home(mps.gpu, Path(mps.root) / "claims" / cdi_name(claim.uid, request))


def _limits(mps: PreparedMps) -> ClientLimits:
    return ClientLimits(memory_mib=mps.memory_mib, threads_percent=mps.threads_percent)
