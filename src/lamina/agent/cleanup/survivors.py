"""Publishes the pods that are gone from Kubernetes while their processes run on this node.

`kubectl delete --force`, and a node that does not answer for long, remove pods whose containers run. The record has
what they hold, so an agent that restarts finds them again. They are published whatever kubelet says, because kubelet
may be what does not answer.

A process keeps the cgroup of its pod populated, holds a lock on the usage file of its container if it uses a share, and
is listed by the driver if it uses a GPU. One of these is enough. The driver is asked last, and its silence says
nothing: pods must be released also while it fails.

The sandbox of a pod ends a little later than its containers. So if kubelet has reported these as terminated, the
cgroup of the pod decides only after `SANDBOX_S`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path

from lamina.agent.containers.paths import folder_name
from lamina.agent.context import NodeContext
from lamina.agent.inventory.native_devices import all_native
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.survivors import MAX_SURVIVORS, Survivor
from lamina.enforcement.files import USAGE
from lamina.enforcement.open_usage import is_in_use
from lamina.errors import Outside
from lamina.ports import cgroups
from lamina.ports.host import Host
from lamina.ports.polling import FailureLog, poll


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


log = logging.getLogger(__name__)

SANDBOX_S = 5.0
"""Longer than a sandbox usually outlives the containers of its pod."""


class SurvivorPublisher:
    """Looks for survivors on one node. `publish` gets them once they are known, and whenever they change.

    Pods are observed by a `PodWatch`. Nothing is published before Kubernetes has listed them.
    """

    def __init__(
        self, node: NodeContext, processes: PodProcesses, publish: Callable[[tuple[Survivor, ...]], None]
    ) -> None:
        self._node = node
        self._processes = processes
        self._publish = publish
        self._listed = False
        self._present: set[str] = set()
        """The UIDs of the pods that have not ended."""
        self._terminated: dict[str, float] = {}
        """When pods ended whose containers had terminated before; seconds of the monotonic clock."""
        self._published: tuple[Survivor, ...] | None = None
        self._left_out = 0
        """How many were not published, because an inventory has a bound."""
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Look forever, because processes end without an event."""
        every_s = self._node.settings.poll_s
        failures = FailureLog(log, "Cannot look for processes of deleted pods: %s")
        await poll(self.reconcile, self._node.clock, every_s=every_s, delay_s=every_s, failures=failures)

    async def observe_list(self) -> None:
        """All pods of the node have been observed."""
        self._listed = True
        await self.reconcile()

    def observe(self, uid: str) -> None:
        """The pod exists and has not ended."""
        self._present.add(uid)

    async def observe_end(self, uid: str, *, terminated: bool) -> None:
        """The pod is deleted or finished. `terminated`: kubelet has reported that its containers have terminated."""
        self._present.discard(uid)
        if terminated:
            self._terminated.setdefault(uid, self._node.clock.monotonic())
        await self.reconcile()

    async def reconcile(self) -> None:
        """Publish what has changed. One at a time, so that what is published last was looked for last."""
        async with self._turn:
            if self._listed:
                await self._look()

    async def _look(self) -> None:
        bound = [each.bound for each in self._node.record.allocations if each.bound is not None]
        uids, now = {each.pod_uid for each in bound}, self._node.clock.monotonic()
        self._terminated = {uid: since for uid, since in self._terminated.items() if uid in uids}
        with_sandbox = {uid for uid, since in self._terminated.items() if now - since < SANDBOX_S}
        gone = [each for each in bound if each.pod_uid not in self._present]
        surviving = await self._processes.pods_with_processes(gone, with_sandbox)
        found = _survivors(self._node.record.allocations, surviving)
        survivors, before = found[:MAX_SURVIVORS], self._left_out
        self._left_out = len(found) - len(survivors)
        if self._left_out and not before:
            log.warning(
                "Processes of %d deleted pods run, of which an inventory holds %d; end them, "
                "because the shares of the others do not count",
                len(found),
                MAX_SURVIVORS,
            )
        if survivors != self._published:
            _report(self._published or (), survivors)
            self._published = survivors
            self._publish(survivors)


def _survivors(allocations: Iterable[Holding], uids: frozenset[str]) -> tuple[Survivor, ...]:
    """What the pods with these UIDs hold by grants, by UID. A name that a container got twice counts once."""
    pods: dict[str, dict[str, Holding]] = {}
    for allocation in allocations:
        bound = allocation.bound
        if bound is not None and bound.pod_uid in uids and not all_native(allocation.tickets):
            pods.setdefault(bound.pod_uid, {})[bound.container] = allocation
    named = []
    for uid in sorted(pods):
        bounds = [each.bound for each in pods[uid].values() if each.bound is not None]
        containers = tuple(bound.grant for bound in bounds)
        named.append(Survivor(namespace=bounds[0].namespace, pod=bounds[0].pod, pod_uid=uid, containers=containers))
    return tuple(named)


def _report(before: tuple[Survivor, ...], now: tuple[Survivor, ...]) -> None:
    for uid, survivor in {each.pod_uid: each for each in (*before, *now)}.items():
        name = f"{survivor.namespace}/{survivor.pod}"
        if uid not in {each.pod_uid for each in before}:
            log.warning("Pod %s is deleted, but its processes run; its shares count until they have ended", name)
        elif uid not in {each.pod_uid for each in now}:
            log.info("The processes of the deleted pod %s have ended", name)
