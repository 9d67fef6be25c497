"""The driver's own memory limits, on nodes where it can limit a container's cgroup.

The facade is in every container with a share: it limits compute and managed memory, which the driver does not count,
and what the container sees. The driver adds a limit that no program can bypass. It can only be set once the container's
cgroup exists, so the facade alone limits a container in its first seconds, and permanently if setting the limit fails:
no container is ever without limits.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from lamina.agent.containers.paths import folder_name
from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import Bound
from lamina.enforcement import Limits, read_limits
from lamina.enforcement.files import LIMITS
from lamina.errors import LaminaError, Outside
from lamina.ports import cgroups
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

_KIND = "limit of the driver"


class DriverLimits:
    """Sets the driver's limits on the containers of one node, and knows which containers have them."""

    def __init__(
        self,
        node: NodeContext,
        *,
        gpus: Callable[[], tuple[str, ...]],
        publish: Callable[[tuple[str, ...]], None],
        root: Path = cgroups.ROOT,
    ) -> None:
        """`gpus` returns the UUIDs of GPUs that the driver may limit; `publish` gets the limited containers when they
        change; `root` is where the tree of cgroups is mounted.
        """
        self._node = node
        self._gpus = gpus
        self._publish = publish
        self._root = root
        self._limited: dict[str, tuple[Path, Limits]] = {}
        self._failures: dict[str, str] = {}

    @property
    def limited(self) -> tuple[str, ...]:
        """`<pod UID>/<container>` of each container that the driver limits too."""
        return tuple(sorted(self._limited))

    async def run(self) -> None:
        """Sweep forever, if the configuration asks for the driver's limits and the node supports them."""
        chosen, reported = self._node.config.sharing.memory_enforcer, False

        async def reconcile() -> None:
            nonlocal reported
            if chosen != "facade" and await self.supported(self._gpus()):
                await self.reconcile()
            elif chosen == "driver" and not reported:
                reported = True
                log.warning("The driver cannot limit containers on this node; the facade alone limits them")

        every_s = self._node.settings.poll_s
        failures = FailureLog(log, "Cannot check the driver's limits: %s", level=logging.DEBUG)
        await poll(reconcile, self._node.clock, every_s=every_s, delay_s=every_s, failures=failures)

    async def supported(self, uuids: tuple[str, ...]) -> bool:
        """Whether this node's kernel and driver can limit containers on all these GPUs."""
        return (
            bool(uuids)
            and cgroups.is_unified(self._root)
            and all([await self._node.nvml.limits_memory(uuid, self._root) for uuid in uuids])
        )

    async def reconcile(self) -> None:
        """Set missing limits and clear those of containers that have ended. Raises Outside."""
        before = self.limited
        bound = {_name(a.bound): a.bound for a in self._node.record.allocations if a.bound}
        for name in [name for name in self._limited if name not in bound]:
            with self._node.aside.around(_KIND, name):
                await self._clear(name)
        self._failures = {name: reason for name, reason in self._failures.items() if name in bound}
        ids_by_pod: dict[str, Mapping[str, str]] = {}
        for name, container in bound.items():
            with self._node.aside.around(_KIND, name, passing=Outside):
                await self._look_at(name, container, ids_by_pod)
        if self.limited != before:
            self._publish(self.limited)

    async def _look_at(self, name: str, bound: Bound, ids_by_pod: dict[str, Mapping[str, str]]) -> None:
        uid = bound.pod_uid
        if uid not in ids_by_pod:
            ids_by_pod[uid] = await self._node.cluster.list_container_ids(bound.namespace, bound.pod, uid)
        cgroup = cgroups.container_cgroup(uid, ids_by_pod[uid].get(bound.container, ""), self._root)
        if cgroup is not None and (name not in self._limited or self._limited[name][0] != cgroup):
            await self._limit(name, bound, cgroup)

    async def _limit(self, name: str, bound: Bound, cgroup: Path) -> None:
        self._limited.pop(name, None)
        folder = self._node.paths.containers / folder_name(bound.pod_uid, bound.container)
        try:
            limits = read_limits(folder / LIMITS)
        except LaminaError:
            return  # a whole GPU, which has no limits
        try:
            for device in limits.devices:
                await self._node.nvml.limit_memory(device.uuid, cgroup, device.guaranteed)
        except Outside as error:
            if self._failures.get(name) != str(error):
                container = f"{bound.container} of {bound.namespace}/{bound.pod}"
                log.warning("The facade alone limits container %s: %s", container, error)
            self._failures[name] = str(error)
            return
        self._limited[name] = (cgroup, limits)
        log.info("The driver limits container %s of %s/%s", bound.container, bound.namespace, bound.pod)

    async def _clear(self, name: str) -> None:
        cgroup, limits = self._limited.pop(name)
        for device in limits.devices if self._node.files.has_folder(cgroup) else ():
            try:
                await self._node.nvml.limit_memory(device.uuid, cgroup, None)
            except Outside as error:
                log.warning("Cannot remove the driver's limit on %s: %s", cgroup, error)


def _name(bound: Bound) -> str:
    return f"{bound.pod_uid}/{bound.container}"
