"""Applies the sizes that grants give to running containers, and publishes which ones they have.

The controller annotates a pod whenever it has changed the size in its grant. The annotation only says that there is
something to read: what counts is the grant. The record has the larger of both sizes while one replaces the other, so
that a pod which outlives its object never counts for less than it may use.
"""

import logging
from collections.abc import Callable
from functools import partial

from msgspec import structs

from lamina.agent.containers.paths import folder_name
from lamina.agent.context import NodeContext
from lamina.agent.limits.driver_reports import ProcessOwners
from lamina.agent.state.holdings import Bound
from lamina.core.grants import ContainerGrant
from lamina.core.quantities import MIB
from lamina.core.sizes import MAX_APPLIED, AppliedSize, raised, size_of, usable
from lamina.enforcement import Limits, read_limits
from lamina.enforcement.files import LIMITS
from lamina.enforcement.live_limits import MemoryHeld, resize_container
from lamina.errors import LaminaError
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

LOOK_S = 1.0
_KIND = "size of a container"


class ContainerResizer:
    """Of one node. `publish` gets the sizes whenever they change; a `PodWatch` says what happens to pods."""

    def __init__(
        self, node: NodeContext, owners: ProcessOwners, publish: Callable[[tuple[AppliedSize, ...]], None]
    ) -> None:
        self._node = node
        self._owners = owners
        self._publish = publish
        self._due: set[str] = set()
        self._waiting: dict[tuple[str, str], str] = {}
        """Why a container does not have its size yet."""
        self._held: dict[tuple[str, str], int] = {}
        """The generations of sizes that are smaller than what programs hold."""
        self._published: tuple[AppliedSize, ...] = ()

    def observe(self, uid: str, status: str) -> None:
        """The pod exists, has changed, and its annotation says this: where it says anything, its grant is read."""
        if status:
            self._due.add(uid)

    def observe_end(self, uid: str) -> None:
        self._due.discard(uid)

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot resize containers: %s")
        await poll(self.reconcile, self._node.clock, every_s=LOOK_S, delay_s=LOOK_S, failures=failures)

    async def reconcile(self) -> None:
        """Apply what is due, and publish. What fails is due again."""
        bounds = {
            (each.bound.pod_uid, each.bound.container): each.bound
            for each in self._node.record.allocations
            if each.bound is not None
        }
        self._waiting = {key: why for key, why in self._waiting.items() if key in bounds and key[0] in self._due}
        self._held = {key: generation for key, generation in self._held.items() if key in self._waiting}
        for uid in sorted(self._due):
            pod = [bound for (of, _), bound in bounds.items() if of == uid]
            with self._node.aside.around(_KIND, uid):
                if not pod or await self._follow(pod):
                    self._due.discard(uid)
        self._publish_sizes()

    async def _follow(self, pod: list[Bound]) -> bool:
        """Whether all containers of the pod have their sizes."""
        first = pod[0]
        grant = await self._node.cluster.get_grant(first.namespace, first.pod, first.pod_uid)
        granted = {container.name: container for container in grant.containers} if grant else {}
        done = True
        for bound in pod:
            key, container = (bound.pod_uid, bound.container), granted.get(bound.container)
            self._waiting.pop(key, None)
            self._held.pop(key, None)
            if container is None or _generation(bound.grant) >= _generation(container):
                continue
            try:
                await self._apply(bound, bound.grant, container)
            except LaminaError as error:
                self._waiting[key] = f"container {bound.container}: {error}"
                if isinstance(error, MemoryHeld):
                    self._held[key] = _generation(container)
                done = False
        return done

    async def _apply(self, bound: Bound, before: ContainerGrant, container: ContainerGrant) -> None:
        """Raises NotYet while programs hold more than the new size, or may."""
        self._remember(bound, raised(before, size_of(container)))
        frees = any(share.memory_mib > size_of(container).memory_mib for share in before.shares)
        folder = self._node.paths.containers / folder_name(bound.pod_uid, bound.container)
        size, limits = size_of(container), read_limits(folder / LIMITS)
        devices = tuple(device.resized(size.memory_mib * MIB, size.cores) for device in limits.devices)
        resized = Limits(devices=devices, priority=limits.priority, log_level=limits.log_level)
        await resize_container(folder, resized, partial(self._owners.memory, bound) if frees else None)
        self._remember(bound, usable(container))
        log.info(
            "Container %s of %s/%s now has %d MiB and %d percent of the time of each GPU",
            *(bound.container, bound.namespace, bound.pod, size.memory_mib, size.cores),
        )

    def _remember(self, bound: Bound, container: ContainerGrant) -> None:
        names = {
            each.name: structs.replace(each.bound, grant=container)
            for each in self._node.record.allocations
            if each.bound is not None and (each.bound.pod_uid, each.bound.container) == (bound.pod_uid, bound.container)
        }
        self._node.record.bind(names)

    def _publish_sizes(self) -> None:
        sizes = {
            (bound.pod_uid, bound.container): self._applied(bound, bound.grant)
            for each in self._node.record.allocations
            if (bound := each.bound) is not None
            if bound.grant.size is not None or (bound.pod_uid, bound.container) in self._waiting
        }
        published = tuple(sizes[key] for key in sorted(sizes))[:MAX_APPLIED]
        if published != self._published:
            self._published = published
            self._publish(published)

    def _applied(self, bound: Bound, container: ContainerGrant) -> AppliedSize:
        key, size = (bound.pod_uid, bound.container), size_of(container)
        return AppliedSize(
            pod_uid=bound.pod_uid,
            container=bound.container,
            generation=size.generation,
            waiting=self._waiting.get(key, ""),
            held_generation=self._held.get(key, 0),
            memory_mib=size.memory_mib,
            cores=size.cores,
        )


def _generation(container: ContainerGrant) -> int:
    return size_of(container).generation
