"""Whose the processes are that the driver lists on a GPU, and how much of its memory a container holds by its figures.

A process belongs to the pod whose cgroup it is in: no process in a container can leave that, and no variable says it.
Where kubelet makes no cgroups for pods, a process belongs to the container whose usage file it has mapped: no process
of another container can open it. Cgroups do not name containers, so of a pod with several containers a process counts
for each, except for one that has the usage file of another one mapped.

What a container holds is known only if each listed process is known to be, or not to be, one of its own. A process that
cannot be seen here, because it is in another PID namespace or has just ended, could be one.
"""

from collections.abc import Iterable
from pathlib import Path

from lamina.agent.containers.paths import USAGE, folder_name
from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import Bound
from lamina.ports import cgroups
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess

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
