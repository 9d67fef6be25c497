"""When a pod is gone, so is everything that was made for it.

A name is released when kubelet lists its pod no more with any of its tickets, and Kubernetes has no such pod, or only a
finished or a newer one. Both have to say so: kubelet's list is empty for a moment after its restart, and Kubernetes
may forget a pod whose containers still run. Tickets that were given to another pod since are free without question.

The spec goes first (no container can start from it any more), then the folder, the record last, so that a release that
was cut off is taken up again. A name that no container came for, as when its pod was deleted before it started, is
forgotten when kubelet has listed nobody with its tickets for `UNLISTED_S` and all pods of this node that ask for its
resource are listed; and where one of them is not, which may be the one, after `UNCLAIMED_S`.
"""

import logging
from collections.abc import Collection, Sequence

from lamina.agent import cdi
from lamina.agent.cluster import Cluster
from lamina.agent.libraries import remove_unused
from lamina.agent.plan import Places, folder_name
from lamina.agent.record import Allocation, Record
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kubelet.podresources import Holder, PodResources

log = logging.getLogger(__name__)

UNLISTED_S = 10.0
"""Longer than kubelet's list is empty after its restart."""
UNCLAIMED_S = 600.0


class Releaser:
    """Sweeps the record of one node. `resources` are those for which kubelet hands out devices now."""

    def __init__(
        self,
        *,
        resources: Collection[str],
        record: Record,
        pod_resources: PodResources,
        cluster: Cluster,
        places: Places,
        files: Files,
        clock: Clock,
    ) -> None:
        self._resources = resources
        self._record = record
        self._pod_resources = pod_resources
        self._cluster = cluster
        self._places = places
        self._files = files
        self._clock = clock
        self._unlisted_since: dict[str, float] = {}

    async def sweep(self) -> None:
        """Release what is to be released now. Raises Outside when kubelet or Kubernetes does not answer."""
        known = self._record.allocations
        if not known:
            return
        listed = await self._pod_resources.holders({*self._resources, *(each.resource for each in known)})
        ended = {a for number, a in enumerate(known, 1) if _superseded(a, known[number:])}
        ended |= await self._unclaimed(known, listed)
        waiting = [a for a in known if a.bound and a not in ended and not _lists(listed, a)]
        for bound in {a.bound.pod_uid: a.bound for a in waiting if a.bound}.values():
            pod = await self._cluster.pod(bound.namespace, bound.pod)
            if pod is None or pod.uid != bound.pod_uid or pod.finished:
                ended |= {a for a in waiting if a.bound and a.bound.pod_uid == bound.pod_uid}
        unchanged = ended.intersection(self._record.allocations)
        self.release({allocation.name for allocation in unchanged})

    def release(self, names: set[str]) -> None:
        """Remove everything that was made for `names`. Raises Outside."""
        allocations = self._record.allocations
        kept = {self._folder(a) for a in allocations if a.name not in names}
        for allocation in allocations:
            if allocation.name in names:
                self._files.remove(self._places.cdi / cdi.file_name(allocation.name))
                folder = self._folder(allocation)
                if folder and folder not in kept:
                    self._files.remove_tree(self._places.containers / folder)
                if allocation.bound:
                    bound = allocation.bound
                    log.info("Released container %s of %s/%s", bound.container, bound.namespace, bound.pod)
        self._record.drop(names)
        remove_unused(self._places.libraries, self._places.cdi, self._files)

    def _folder(self, allocation: Allocation) -> str:
        return folder_name(allocation.bound.pod_uid, allocation.bound.container) if allocation.bound else ""

    async def _unclaimed(self, known: Sequence[Allocation], listed: Sequence[Holder]) -> set[Allocation]:
        """The names that nobody came for, and nobody will."""
        held = frozenset().union(*(holder.devices for holder in listed))
        now = self._clock.monotonic()
        idle = {a: self._unlisted_since.get(a.name, now) for a in known if a.bound is None and not a.tickets & held}
        self._unlisted_since = {allocation.name: since for allocation, since in idle.items()}
        old = {allocation for allocation, since in idle.items() if now - since >= UNLISTED_S}
        if not old:
            return old
        asking = await self._cluster.asking({allocation.resource for allocation in old})
        if asking <= {(holder.namespace, holder.pod) for holder in listed}:
            return old
        return {allocation for allocation in old if now - idle[allocation] >= UNCLAIMED_S}


def _superseded(allocation: Allocation, later: Sequence[Allocation]) -> bool:
    """Whether a ticket of a bound name was given to another pod later."""
    return allocation.bound is not None and any(
        each.bound is not None
        and each.bound.pod_uid != allocation.bound.pod_uid
        and each.resource == allocation.resource
        and each.tickets & allocation.tickets
        for each in later
    )


def _lists(listed: Sequence[Holder], allocation: Allocation) -> bool:
    """Whether kubelet lists the pod of a bound name with any of its tickets."""
    bound = allocation.bound
    return bound is not None and any(
        (holder.namespace, holder.pod) == (bound.namespace, bound.pod) and holder.devices & allocation.tickets
        for holder in listed
    )


async def sweeping(releaser: Releaser, clock: Clock, *, poll_s: float) -> None:
    """Sweep for ever."""
    failures = 0
    while True:
        await clock.sleep(poll_s)
        try:
            await releaser.sweep()
            failures = 0
        except Outside as error:
            if failures in (0, 10) or failures % 100 == 0:
                log.warning("Nothing can be released: %s", error)
            failures += 1
