"""Removes everything that was made for a pod once the pod is gone.

A name is released when kubelet no longer lists its pod with any of its devices, and Kubernetes has no such pod, or only
a finished or newer one. Both are required: kubelet's list is empty for a moment after it restarts, and Kubernetes may
forget a pod whose containers still run. Devices that were assigned to another pod since are free in any case, and
kubelet's list does not count for devices that it assigned again: it names pods without their UIDs, so it may mean a
newer pod of the same name. But as long as processes of the pod run, its record and files stay, see `survivors`.

The spec is removed first, so that no container can start from it, then the directory and finally the record, so that an
interrupted release is repeated. A name that no container ever used, for example because its pod was deleted before it
started, is dropped when kubelet has listed no holder of its devices for `UNLISTED_S` and lists all pods of this node
that request its resource; if one of those is not listed, and so may be the holder, after `UNCLAIMED_S`. It is kept as
long as kubelet's checkpoint assigns its devices to a container of a pod of this node: an init container, which is never
listed, may wait for long ones before it.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from lamina.agent.cleanup.survivors import PodProcesses
from lamina.agent.containers import cdi
from lamina.agent.containers.paths import folder_name, remove_unused
from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import Bound, Holding
from lamina.errors import Outside
from lamina.ports.kubelet.allocations import Assignment, Holder, read_assignments
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

UNLISTED_S = 10.0
"""Longer than kubelet's list is empty after a restart."""
UNCLAIMED_S = 600.0
_KIND = "pod to release"


class Releaser:
    """Sweeps the record of one node. `resources` are those for which kubelet hands out devices now."""

    def __init__(self, node: NodeContext, resources: Collection[str], processes: PodProcesses) -> None:
        self._node = node
        self._processes = processes
        self._record = node.record
        self._resources = resources
        self._unlisted_since: dict[str, float] = {}

    async def run(self) -> None:
        """Reconcile forever."""
        every_s = self._node.settings.poll_s
        failures = FailureLog(log, "Cannot release devices of deleted pods: %s")
        await poll(self.reconcile, self._node.clock, every_s=every_s, delay_s=every_s, failures=failures)

    async def reconcile(self) -> None:
        """Release what can be released now. Raises Outside when kubelet or the API server does not answer."""
        known = self._record.allocations
        if not known:
            return
        resources = {*self._resources, *(allocation.resource for allocation in known)}
        listed = await self._node.pod_resources.holders(resources)
        ended = {a for number, a in enumerate(known, 1) if _superseded(a, known[number:])}
        ended |= await self._unclaimed(known, listed)
        own = {a: a.tickets.difference(*_tickets_of(known[number:], a)) for number, a in enumerate(known, 1)}
        unlisted = [a for a in known if a.bound and a not in ended and not _lists(listed, a.bound, own[a])]
        for bound in {a.bound.pod_uid: a.bound for a in unlisted if a.bound}.values():
            if await self._has_ended(bound):
                ended |= {a for a in unlisted if a.bound and a.bound.pod_uid == bound.pod_uid}
        surviving = await self._processes.pods_with_processes([a.bound for a in ended if a.bound])
        unchanged = ended.intersection(self._record.allocations)
        self.release({a.name for a in unchanged if a.bound is None or a.bound.pod_uid not in surviving})

    async def _has_ended(self, bound: Bound) -> bool:
        """Whether Kubernetes has no such pod, or only a finished or newer one. One that cannot be read has not ended.

        Raises Outside.
        """
        with self._node.aside.around(_KIND, f"{bound.namespace}/{bound.pod}", passing=Outside):
            pod = await self._node.cluster.get_pod(bound.namespace, bound.pod)
            return pod is None or pod.uid != bound.pod_uid or pod.finished
        return False

    def release(self, names: set[str]) -> None:
        """Remove everything that was made for `names`. What cannot be removed is set aside, and tried again later.

        Raises Outside when the record cannot be written.
        """
        files, paths = self._node.files, self._node.paths
        allocations = self._record.allocations
        still_used = {_folder(a) for a in allocations if a.name not in names}
        released = set()
        for allocation in allocations:
            if allocation.name not in names:
                continue
            bound, folder = allocation.bound, _folder(allocation)
            with self._node.aside.around("files to remove", folder or allocation.name):
                files.remove(paths.cdi / cdi.file_name(allocation.name))
                if folder and folder not in still_used:
                    files.remove_tree(paths.containers / folder)
                if bound:
                    log.info("Released container %s of %s/%s", bound.container, bound.namespace, bound.pod)
                released.add(allocation.name)
        self._record.drop(released)
        remove_unused(paths.libraries, paths.cdi, files)

    async def _unclaimed(self, known: Sequence[Holding], listed: Sequence[Holder]) -> set[Holding]:
        """The names that no container has used or will use."""
        held = frozenset().union(*(holder.devices for holder in listed))
        now = self._node.clock.monotonic()
        idle = {a: self._unlisted_since.get(a.name, now) for a in known if a.bound is None and not a.tickets & held}
        self._unlisted_since = {allocation.name: since for allocation, since in idle.items()}
        old = {allocation for allocation, since in idle.items() if now - since >= UNLISTED_S}
        old -= await self._awaited(old)
        if not old:
            return old
        requesting = await self._node.cluster.list_pods_requesting({allocation.resource for allocation in old})
        if requesting <= {(holder.namespace, holder.pod) for holder in listed}:
            return old
        return {allocation for allocation in old if now - idle[allocation] >= UNCLAIMED_S}

    async def _awaited(self, idle: Collection[Holding]) -> set[Holding]:
        """Those whose devices kubelet has assigned to a container of a pod that is still here; none if unknown."""
        assigned: dict[str, Sequence[Assignment]] = {}
        for resource in {allocation.resource for allocation in idle}:
            with suppress(Outside):
                assigned[resource] = read_assignments(self._node.files, self._node.settings.kubelet_dir, resource)
        if not any(assigned.values()):
            return set()
        here = await self._node.cluster.list_pod_uids()
        return {
            allocation
            for allocation in idle
            for each in assigned.get(allocation.resource, ())
            if each.devices == allocation.tickets and each.pod_uid in here
        }


def _folder(allocation: Holding) -> str:
    return folder_name(allocation.bound.pod_uid, allocation.bound.container) if allocation.bound else ""


def _superseded(allocation: Holding, later: Sequence[Holding]) -> bool:
    """Whether a device of a bound name was assigned to another pod later."""
    return allocation.bound is not None and any(
        each.bound is not None
        and each.bound.pod_uid != allocation.bound.pod_uid
        and each.resource == allocation.resource
        and each.tickets & allocation.tickets
        for each in later
    )


def _tickets_of(later: Sequence[Holding], allocation: Holding) -> Iterator[frozenset[str]]:
    """The devices of the same resource that were assigned later, also to containers that have not started yet."""
    return (each.tickets for each in later if each.resource == allocation.resource)


def _lists(listed: Sequence[Holder], bound: Bound, tickets: frozenset[str]) -> bool:
    """Whether kubelet lists the pod of a bound name with any of the devices that no one else has got since."""
    return any(
        (holder.namespace, holder.pod) == (bound.namespace, bound.pod) and holder.devices & tickets for holder in listed
    )
