"""What the driver says of the work and memory of each container on the GPUs that containers share.

The arbiter and the lenders of memory believe what containers claim only as far as this goes. What a pod's processes do
confirms the claims of all containers of the pod, because its cgroups do not name these.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.paths import folder_name, pod_uid_of
from lamina.agent.context import NodeContext
from lamina.agent.limits.process_owners import ProcessOwners
from lamina.agent.state.holdings import Bound
from lamina.core.gpu_modes import Mode
from lamina.enforcement.driver_figures import UNCONFIRMED, Confirmation
from lamina.errors import Outside
from lamina.ports.host import Host
from lamina.ports.nvml import GpuReading

LOOK_S = 0.5
OLD_S = 3.0
"""Older figures confirm nothing."""
DRIVERS_OWN = 1 << 30
"""As much of a GPU's memory may be in use by the driver itself."""


class _OnGpu(NamedTuple):
    """What the driver said of one GPU: of each process, and whose it is; `work` is None where it is not measured.

    `unlisted` are the bytes that are in use and are of no listed process, None where that is not known.
    """

    at: float
    owners: Mapping[int, str]
    work: Mapping[int, float] | None
    memory: Mapping[int, int | None]
    unlisted: int | None


class DriverReports:
    """Asks NVML of one node about each GPU that several containers have."""

    def __init__(self, node: NodeContext, host: Host) -> None:
        self._node = node
        self._owners = ProcessOwners(node, host)
        self._gpus: dict[str, _OnGpu] = {}

    async def run(self) -> None:
        """Reconcile forever."""
        while True:
            await self.reconcile()
            await self._node.clock.sleep(LOOK_S)

    async def reconcile(self) -> None:
        """Ask about all shared GPUs once. One about which NVML does not answer is asked about again the next time."""
        shared = self._shared()
        self._gpus = {uuid: known for uuid, known in self._gpus.items() if uuid in shared}
        for uuid, containers in shared.items():
            with suppress(Outside), self._node.aside.around("work on a GPU", uuid, passing=Outside):
                await self._ask(uuid, containers)

    def confirmation(self, folder: Path, uuid: str) -> Confirmation:
        """What is known of the container of this folder."""
        known = self._gpus.get(uuid)
        if known is None or known.at + OLD_S < self._node.clock.monotonic():
            return UNCONFIRMED
        names = (folder.name, *self._node.record.pods_of(pod_uid_of(folder.name)))
        own = [pid for pid, owner in known.owners.items() if owner in names]
        sizes = [known.memory[pid] for pid in own]
        memory = None if None in sizes else sum(size or 0 for size in sizes)
        if known.work is None:
            return Confirmation(len(own), None, memory=memory, unlisted=known.unlisted)
        work = min(1.0, sum(known.work.get(pid, 0.0) for pid in own))
        owner = next((name for name in names if name in known.owners.values()), "")
        at = int(known.at * 1e9)
        return Confirmation(len(own), work, asked_at=at, owner=owner, memory=memory, unlisted=known.unlisted)

    def _shared(self) -> dict[str, list[Bound]]:
        """The containers on each GPU that several have by shares."""
        found: dict[str, dict[str, Bound]] = {}
        for bound in self._node.record.containers:
            if bound.mode in (Mode.QUOTA, Mode.MPS):
                for uuid in bound.gpus:
                    found.setdefault(uuid, {})[folder_name(bound.pod_uid, bound.container)] = bound
        return {uuid: list(containers.values()) for uuid, containers in found.items() if len(containers) > 1}

    async def _ask(self, uuid: str, containers: Sequence[Bound]) -> None:
        at = self._node.clock.monotonic()
        listed = await self._node.nvml.processes(uuid)
        work = await self._node.nvml.work(uuid)
        owners = {process.pid: self._owners.owner_of(process.pid, containers) for process in listed}
        memory = {process.pid: process.memory_bytes for process in listed}
        unlisted = await self._unlisted(uuid, memory) if any(map(_may_borrow, containers)) else None
        self._gpus[uuid] = _OnGpu(at, {pid: owner for pid, owner in owners.items() if owner}, work, memory, unlisted)

    async def _unlisted(self, uuid: str, memory: Mapping[int, int | None]) -> int | None:
        used = (await self._node.nvml.readings()).get(uuid, GpuReading()).used_bytes
        return None if used is None else max(0, used - sum(size or 0 for size in memory.values()) - DRIVERS_OWN)


def _may_borrow(container: Bound) -> bool:
    return any(share.most_memory_mib for share in container.grant.shares)
