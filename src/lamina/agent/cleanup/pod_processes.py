"""Which pods have processes, whatever kubelet and Kubernetes know of them.

A process keeps the cgroup of its pod populated, holds a lock on the usage file of its container if it uses a share, and
is listed by the driver if it uses a GPU. One of these is enough. The driver is asked last, and its silence says
nothing: pods must be released also while it fails.
"""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path

from lamina.agent.containers.paths import USAGE, folder_name
from lamina.agent.context import NodeContext
from lamina.enforcement.open_usage import is_in_use
from lamina.agent.state.holdings import Bound
from lamina.errors import Outside
from lamina.ports import cgroups
from lamina.ports.host import Host


class PodProcesses:
    """Looks for the processes of one node's pods."""

    def __init__(self, node: NodeContext, host: Host, root: Path = cgroups.ROOT) -> None:
        """`root` is where the tree of cgroups is mounted."""
        self._node = node
        self._host = host
        self._root = root

    async def pods_with_processes(
        self, containers: Iterable[Bound], with_sandbox: Set[str] = frozenset()
    ) -> frozenset[str]:
        """The UIDs of those pods of these containers that have processes.

        The cgroups of pods `with_sandbox` are not looked at, because their sandbox may be all that is in them.
        """
        listed = list(containers)
        found = {each.pod_uid for each in listed if self._is_used(each)}
        others = {each.pod_uid for each in listed} - with_sandbox
        found |= {uid for uid in others if cgroups.pod_has_processes(uid, self._root)}
        unclear = [each for each in listed if each.pod_uid not in found]
        on_gpu = {gpu: await self._cgroups_on(gpu) for gpu in {gpu for each in unclear for gpu in each.gpus}}
        return frozenset(found | {each.pod_uid for each in unclear if _is_listed(each, on_gpu)})

    def _is_used(self, container: Bound) -> bool:
        """Whether a process has a lock on the usage file. A file that cannot be examined counts as used."""
        folder = folder_name(container.pod_uid, container.container)
        with self._node.aside.around("locks of a container", folder):
            return is_in_use(self._node.paths.containers / folder / USAGE)
        return True

    async def _cgroups_on(self, gpu: str) -> list[str]:
        """The cgroups of each process on the GPU."""
        with suppress(Outside), self._node.aside.around("processes on a GPU", gpu, passing=Outside):
            processes = await self._node.nvml.processes(gpu)
            return [self._host.process_cgroups(process.pid) for process in processes]
        return []


def _is_listed(container: Bound, on_gpu: Mapping[str, list[str]]) -> bool:
    return any(cgroups.is_of_pod(paths, container.pod_uid) for gpu in container.gpus for paths in on_gpu[gpu])
