"""What the driver says of the work and memory of each container on the GPUs that containers share.

The arbiter and the lenders of memory believe what containers report only as far as this goes. What a pod's processes do
confirms the reports of all containers of the pod, because its cgroups do not name these.

A process belongs to the pod whose cgroup it is in: no process in a container can leave that, and no variable says it.
Where kubelet makes no cgroups for pods, a process belongs to the container whose usage file it has mapped: no process
of another container can open it. Cgroups do not name containers, so of a pod with several containers a process counts
for each, except for one that has the usage file of another one mapped.

What a container holds is known only if each listed process is known to be, or not to be, one of its own. A process that
cannot be seen here, because it is in another PID namespace or has just ended, could be one.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.paths import folder_name, pod_uid_of
from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import Bound
from lamina.core.gpu_facts import Mode
from lamina.enforcement.driver_figures import UNCONFIRMED, Confirmation
from lamina.enforcement.files import USAGE
from lamina.errors import Outside
from lamina.ports import cgroups
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess, GpuReading

_TIMES = 3
"""How often the driver is asked while a process is not known: one that has ended is not listed the next time."""


class ProcessOwners:
    """Of one node. `root` is where the tree of cgroups is mounted."""

    def __init__(self, node: NodeContext, host: Host, root: Path = cgroups.ROOT) -> None:
        self._node = node
        self._host = host
        self._root = root

    def owner_of(self, pid: int, containers: Iterable[Bound]) -> str:
        """The UID of a process's pod, or the folder of its container; empty if it is of none of these containers."""
        groups, known = self._host.process_cgroups(pid), list(containers)
        for container in known:
            for pod in self._node.record.pods_of(container.pod_uid):
                if cgroups.is_of_pod(groups, pod):
                    return pod
        return next((_folder(each) for each in known if self._has_mapped(pid, each)), "")

    async def memory(self, container: Bound, uuid: str) -> int | None:
        """How many bytes of a GPU the container's processes hold; None where the driver does not say that.

        Raises Outside where it does not answer.
        """
        others = [
            each
            for allocation in self._node.record.allocations
            if (each := allocation.bound) is not None and _folder(each) != _folder(container) and uuid in each.gpus
        ]
        for _ in range(_TIMES):
            held = self._sum(await self._node.nvml.processes(uuid), container, others)
            if held is not None:
                return held
        return None

    def _sum(self, listed: Iterable[GpuProcess], container: Bound, others: list[Bound]) -> int | None:
        held = 0
        for process in listed:
            own = self._is_own(process.pid, container, others)
            if own is None or (own and process.memory_bytes is None):
                return None
            held += (process.memory_bytes or 0) if own else 0
        return held

    def _is_own(self, pid: int, container: Bound, others: list[Bound]) -> bool | None:
        """Whether a process counts for the container; None where that is not known."""
        groups = self._host.process_cgroups(pid)
        of_pod = cgroups.is_of_pod(groups, container.pod_uid)
        if not of_pod and cgroups.names_pod(groups):
            return False
        if self._has_mapped(pid, container):
            return True
        if any(self._has_mapped(pid, each) for each in others):
            return False
        if of_pod:
            return True
        # A process of no pod is no process of this one, if this one's processes have a cgroup of their own.
        return False if groups and cgroups.has_cgroup(container.pod_uid, self._root) else None

    def _has_mapped(self, pid: int, container: Bound) -> bool:
        return self._host.has_mapped(pid, self._node.paths.containers / _folder(container) / USAGE)


def _folder(container: Bound) -> str:
    return folder_name(container.pod_uid, container.container)


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
