"""MPS as the node's configuration uses it, and for containers with grants, each with its own part of the GPU.

A GPU gets its daemon for grants when the first of their containers is prepared, and loses it when the last one has
ended.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mps.clients import NO_EDITS, ClientEdits, client_edits, share_edits
from lamina.agent.mps.daemons import DaemonSupervisor, ReportDaemon, SharedGpus, require_ready
from lamina.agent.mps.lifecycle import DaemonJournal, DaemonLifecycle
from lamina.configuration.nvidia.rules import DEFAULT_MPS_ROOT
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.mps import MpsDaemon
from lamina.core.sharing import GPU, Strategy
from lamina.errors import NotYet
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.mps import Mps


class GrantClients:
    """The clients with grants of one node."""

    def __init__(self, daemons: DaemonSupervisor) -> None:
        self._daemons = daemons

    def edits(self, container: ContainerGrant, resource: str) -> ClientEdits:
        """What a container with tickets of `resource` needs. Raises NotYet for a grant that no client can have."""
        shares = [share for share in container.shares if share.mode is Mode.MPS]
        if not shares:
            return NO_EDITS
        if len(container.shares) > 1:
            raise NotYet(f'container "{container.name}": a client of MPS has one GPU, and the grant has several')
        return share_edits(resource, self._daemons.home(shares[0].gpu), shares[0])

    async def vacate(self, shares: Iterable[Share]) -> None:
        """End daemons that nothing uses on GPUs that are granted in another mode. Raises NotYet, and Outside."""
        await self._daemons.vacate(sorted({share.gpu for share in shares if share.mode is not Mode.MPS}))

    async def provide(self, shares: Iterable[Share]) -> None:
        """Have the daemons of these shares run; the record has them already. Raises NotYet with the reason."""
        await self._daemons.provide(sorted({share.gpu for share in shares if share.mode is Mode.MPS}))


class MpsSharing(NamedTuple):
    """`active`: new containers become clients."""

    daemons: DaemonSupervisor
    offers: NodeOfferStore
    active: bool

    def edits(self, resource: str, gpu: str) -> ClientEdits:
        """What a container needs to be a client of the GPU's daemon. Raises NotYet while the daemon is not ready."""
        if not self.active:
            return NO_EDITS
        require_ready(gpu, self.offers.daemon(gpu))
        return client_edits(resource, self.daemons.home(gpu))

    @property
    def for_grants(self) -> GrantClients:
        """The same for containers with grants."""
        return GrantClients(self.daemons)


def mps_sharing(node: NodeContext, offers: NodeOfferStore, mps: Mps) -> MpsSharing:
    """MPS as configured. If the configuration does not use it, daemons of an earlier one are stopped.

    Raises Outside if the journal of daemons cannot be read.
    """
    settings, config = node.settings, node.nvidia.config
    journal = DaemonJournal(settings.mps, node.files)
    sharing = config.sharing if config is not None else None
    active = sharing is not None and sharing.strategy is Strategy.MPS and sharing.of(GPU).replicas > 1
    shared = SharedGpus(
        replicas=sharing.of(GPU).replicas if sharing is not None and active else 0,
        root=mps_root(node),
    )
    daemons = DaemonSupervisor(
        node,
        offers,
        shared,
        lifecycle=DaemonLifecycle(mps, node.nvml, journal, node.files, node.clock),
        report=_daemon_events(node.events, node.node),
    )
    return MpsSharing(daemons, offers, active)


def mps_root(node: NodeContext) -> Path:
    """The directory of MPS's pipe directories."""
    config = node.nvidia.config
    return node.settings.mps_root or Path(config.mps_root if config else DEFAULT_MPS_ROOT)


def _daemon_events(events: EventRecorder, node: str) -> ReportDaemon:
    """Reports states as events on the node. kubectl finds a node's events by its name in place of the UID."""
    meta = {"metadata": {"name": node, "uid": node}}

    async def report(daemon: MpsDaemon) -> None:
        event = f"Mps{daemon.state.value.capitalize()}"
        limits = f"{daemon.memory_mib} MiB and {daemon.threads_percent} % of {daemon.gpu} for each client"
        if daemon.for_grants:
            limits = f"{daemon.gpu} for clients with grants, each with limits of its own"
        message = limits if daemon.ready else f"{daemon.gpu}: {daemon.reason}"
        await events.record(NODES, meta, event, message, warning=not daemon.ready)

    return report
