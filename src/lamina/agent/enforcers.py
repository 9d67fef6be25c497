"""The driver as a second enforcer of memory, where it can limit a container's cgroup.

The facade is in every container with a share: it holds compute, managed memory, which the driver does not count, and
what the container is shown. The driver adds a bound that no program can go around. It can only be set once the
container's cgroup exists, so the facade holds it alone for its first seconds, and for good where anything fails: a
container is never without an enforcer.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from lamina.agent import cgroups
from lamina.agent.cluster import Cluster
from lamina.agent.plan import LIMITS, folder_name
from lamina.agent.record import Bound, Record
from lamina.dialects.config import Enforcer
from lamina.enforcement import Limits, read_limits
from lamina.errors import LaminaError, Outside
from lamina.ports.clock import Clock
from lamina.ports.nvml import Nvml

log = logging.getLogger(__name__)


class DriverEnforcer:
    """Sets the driver's limits on the containers of one node, and knows which containers have them."""

    def __init__(
        self,
        *,
        nvml: Nvml,
        cluster: Cluster,
        record: Record,
        containers: Path,
        publish: Callable[[tuple[str, ...]], None],
        root: Path = cgroups.ROOT,
    ) -> None:
        """`publish` is told the containers that the driver holds whenever they are others than before."""
        self._nvml = nvml
        self._cluster = cluster
        self._record = record
        self._containers = containers
        self._publish = publish
        self._root = root
        self._held: dict[str, tuple[Path, Limits]] = {}
        self._failed: dict[str, str] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """`<pod UID>/<container>` of each container that the driver holds as well."""
        return tuple(sorted(self._held))

    async def usable(self, uuids: tuple[str, ...]) -> bool:
        """Whether this node's kernel and driver can do it on all these GPUs."""
        return (
            bool(uuids)
            and cgroups.unified(self._root)
            and all([await self._nvml.limits_memory(uuid, self._root) for uuid in uuids])
        )

    async def sweep(self) -> None:
        """Set what is missing, forget what is gone. Raises Outside when Kubernetes does not answer."""
        before, bound = self.held, {_name(b): b for a in self._record.allocations if (b := a.bound)}
        for name in [name for name in self._held if name not in bound]:
            await self._clear(name)
        self._failed = {name: why for name, why in self._failed.items() if name in bound}
        pods: dict[str, Mapping[str, str]] = {}
        for name, one in bound.items():
            if one.pod_uid not in pods:
                pods[one.pod_uid] = await self._cluster.container_ids(one.namespace, one.pod, one.pod_uid)
            leaf = cgroups.leaf(one.pod_uid, pods[one.pod_uid].get(one.container, ""), self._root)
            if leaf is not None and (name not in self._held or self._held[name][0] != leaf):
                await self._hold(name, one, leaf)
        if self.held != before:
            self._publish(self.held)

    async def _hold(self, name: str, bound: Bound, leaf: Path) -> None:
        self._held.pop(name, None)
        try:
            limits = read_limits(self._containers / folder_name(bound.pod_uid, bound.container) / LIMITS)
        except LaminaError:
            return  # a whole GPU, which nothing limits
        try:
            for device in limits.devices:
                await self._nvml.limit_memory(device.uuid, leaf, device.memory_bytes)
        except Outside as error:
            if self._failed.get(name) != str(error):
                log.warning(
                    "The facade alone holds %s of %s/%s: %s", bound.container, bound.namespace, bound.pod, error
                )
            self._failed[name] = str(error)
            return
        self._held[name] = (leaf, limits)
        log.info("The driver holds %s of %s/%s", bound.container, bound.namespace, bound.pod)

    async def _clear(self, name: str) -> None:
        leaf, limits = self._held.pop(name)
        for device in limits.devices if leaf.is_dir() else ():
            try:
                await self._nvml.limit_memory(device.uuid, leaf, None)
            except Outside as error:
                log.warning("The driver's limit on %s stays: %s", leaf, error)


def _name(bound: Bound) -> str:
    return f"{bound.pod_uid}/{bound.container}"


async def enforcing(
    enforcer: DriverEnforcer, chosen: Enforcer, uuids: Callable[[], tuple[str, ...]], clock: Clock, *, poll_s: float
) -> None:
    """Sweep for ever where the driver is to be used and can be."""
    told = chosen == "facade"
    while True:
        await clock.sleep(poll_s)
        try:
            if chosen != "facade" and await enforcer.usable(uuids()):
                await enforcer.sweep()
            elif chosen == "driver" and not told:
                told = True
                log.warning("The driver cannot limit containers here; the facade holds them")
        except Outside as error:
            log.debug("The driver's limits were not looked at: %s", error)
