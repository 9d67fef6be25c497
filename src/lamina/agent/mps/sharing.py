"""MPS as one node shares by it: its daemons, and what joins a container to one."""

from pathlib import Path
from typing import NamedTuple

from lamina.agent.mps.daemons import Daemons, Tell
from lamina.agent.mps.edits import NONE, Edits, client
from lamina.agent.mps.kept import Kept
from lamina.agent.mps.starting import Steps
from lamina.agent.nvidia_source import Applied
from lamina.agent.offer import Offer
from lamina.agent.record import Record
from lamina.agent.settings import AgentSettings
from lamina.dialects.nvidia.rules import DEFAULT_MPS_ROOT
from lamina.errors import NotYet
from lamina.model.mps import MpsDaemon
from lamina.model.sharing import GPU, Strategy
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.mps import Mps
from lamina.ports.nvml import Nvml

NODES_SHM = Path("/dev/shm")


class SharedByMps(NamedTuple):
    """`shm` is the host's folder that daemons have as /dev/shm; `shares` is whether new containers are to join."""

    daemons: Daemons
    offer: Offer
    shm: Path
    shares: bool

    def joins(self, resource: str, gpu: str) -> Edits:
        """What a container gets to be a client of the GPU's daemon. Raises NotYet while that is not ready.

        Without the daemon a program would run without its limits, so no container starts.
        """
        if not self.shares:
            return NONE
        daemon = self.offer.daemon(gpu)
        if daemon is None or not daemon.ready:
            raise NotYet(f"MPS on {gpu} is {f'{daemon.state.value}: {daemon.reason}' if daemon else 'not started yet'}")
        return client(resource, self.daemons.home(gpu), self.shm)


def sharing_mps(
    settings: AgentSettings,
    applied: Applied,
    offer: Offer,
    record: Record,
    nvml: Nvml,
    mps: Mps,
    events: EventRecorder,
    files: Files,
    clock: Clock,
) -> SharedByMps:
    """What the configuration says of MPS, which may be nothing; daemons of an earlier one are then taken down.

    Raises Outside where the list of daemons cannot be understood.
    """
    config, kept = applied.config, Kept(settings.mps, files)
    shared = config.sharing if config is not None else None
    shares = shared is not None and shared.strategy is Strategy.MPS and shared.of(GPU).replicas > 1
    daemons = Daemons(
        nvml=nvml,
        steps=Steps(mps, nvml, kept, files, None if settings.mps_shm == NODES_SHM else settings.mps_shm),
        kept=kept,
        offer=offer,
        allocations=lambda: record.allocations,
        root=settings.mps_root or Path(config.mps_root if config else DEFAULT_MPS_ROOT),
        replicas=shared.of(GPU).replicas if shared is not None and shares else 0,
        clock=clock,
        tell=_telling(events, settings.node),
    )
    return SharedByMps(daemons, offer, settings.mps_shm, shares)


def _telling(events: EventRecorder, node: str) -> Tell:
    """Record on the node what becomes of its daemons. kubectl finds a node's events by its name in place of the UID."""
    meta = {"metadata": {"name": node, "uid": node}}

    async def tell(daemon: MpsDaemon) -> None:
        word = f"Mps{daemon.state.value.capitalize()}"
        limits = f"{daemon.memory_mib} MiB and {daemon.threads_percent} % of {daemon.gpu} for each client"
        text = limits if daemon.ready else f"{daemon.gpu}: {daemon.reason}"
        await events.record(NODES, meta, word, text, warning=not daemon.ready)

    return tell
