"""What the driver says of the work of each container on the GPUs that containers share.

The arbiter believes what containers claim only as far as this goes. A process belongs to the pod whose cgroup it is in.
What a pod's processes do confirms the claims of all containers of the pod, because its cgroups do not name these. Where
kubelet makes no cgroups for pods, a process belongs to the container whose usage file it has mapped: no process of
another container can open it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.paths import USAGE, folder_name
from lamina.agent.context import NodeContext
from lamina.agent.state.record import Bound
from lamina.enforcement.claims import UNCONFIRMED, Confirmation
from lamina.errors import Outside
from lamina.model.gpu_modes import Mode
from lamina.ports.cgroups import is_of_pod
from lamina.ports.host import Host

LOOK_S = 0.5
OLD_S = 3.0
"""Older figures confirm nothing."""


class _OnGpu(NamedTuple):
    """What the driver said of one GPU: of each process, and whose it is; `work` is None where it is not measured."""

    at: float
    owners: Mapping[int, str]
    work: Mapping[int, float] | None


class ConfirmedWork:
    """Asks NVML of one node about each GPU that several containers have."""

    def __init__(self, node: NodeContext, host: Host) -> None:
        self._node = node
        self._host = host
        self._gpus: dict[str, _OnGpu] = {}

    async def run(self) -> None:
        """Look forever."""
        while True:
            await self.look()
            await self._node.clock.sleep(LOOK_S)

    async def look(self) -> None:
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
        names = (folder.name, folder.name.partition("_")[0])
        own = [pid for pid, owner in known.owners.items() if owner in names]
        if known.work is None:
            return Confirmation(len(own), None)
        work = min(1.0, sum(known.work.get(pid, 0.0) for pid in own))
        owner = next((name for name in names if name in known.owners.values()), "")
        return Confirmation(len(own), work, asked_at=int(known.at * 1e9), owner=owner)

    def _shared(self) -> dict[str, list[Bound]]:
        """The containers on each GPU that several have by shares."""
        found: dict[str, dict[str, Bound]] = {}
        for allocation in (*self._node.record.allocations, *self._node.claims.allocations):
            bound = allocation.bound
            if bound is not None and bound.mode in (None, Mode.QUOTA, Mode.MPS):
                for uuid in bound.gpus:
                    found.setdefault(uuid, {})[folder_name(bound.pod_uid, bound.container)] = bound
        return {uuid: list(containers.values()) for uuid, containers in found.items() if len(containers) > 1}

    async def _ask(self, uuid: str, containers: Sequence[Bound]) -> None:
        at = self._node.clock.monotonic()
        listed = await self._node.nvml.processes(uuid)
        work = await self._node.nvml.work(uuid)
        owners = {process.pid: self._owner(process.pid, containers) for process in listed}
        self._gpus[uuid] = _OnGpu(at, {pid: owner for pid, owner in owners.items() if owner}, work)

    def _owner(self, pid: int, containers: Sequence[Bound]) -> str:
        """The UID of a process's pod, or the folder of its container; empty if it is neither's."""
        groups = self._host.process_cgroups(pid)
        for container in containers:
            if is_of_pod(groups, container.pod_uid):
                return container.pod_uid
        for container in containers:
            folder = folder_name(container.pod_uid, container.container)
            if self._host.has_mapped(pid, self._node.paths.containers / folder / USAGE):
                return folder
        return ""
