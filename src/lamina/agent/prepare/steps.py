"""The steps from a plan to a container that may start, the same for grants, native devices and claims.

Check that nothing else has the GPUs in another way and record who gets them, bring the GPUs into their mode, create MIG
instances, start MPS daemons, make the containers' directories, write the CDI specs. The record knows everything before
it is made, so an interrupted start leaves nothing unknown, and kubelet's next call repeats all of it. Directories are
always made again: none of the containers that share a set of devices runs while one of them starts.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from lamina.agent.containers import cdi
from lamina.agent.context import NodeContext
from lamina.agent.inventory import usage
from lamina.agent.inventory.usage import GpuUse
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.plan import PreparationPlan, WriteLimits, write_plan
from lamina.agent.state.holdings import Instance
from lamina.core.grants import Share
from lamina.errors import NotYet


class Takers(Protocol):
    """The containers or claims that take devices in one go. Every call may raise LaminaError with the reason why that
    is not possible now."""

    @property
    def shares(self) -> Collection[Share]:
        """What has to be brought into its mode."""
        ...

    def check(self) -> None:
        """Nothing else has the GPUs in a way that excludes this."""

    async def vacate(self) -> None:
        """End what nothing uses and is in the way. That may take time, so `check` is repeated."""

    def record(self) -> None:
        """From here on the devices are theirs."""

    async def provide(self, devices: Mapping[Instance, str]) -> None:
        """Start what serves the devices. `devices` are the UUIDs of the MIG instances."""


class PodTakers:
    """Containers of one pod, with a grant or, if `resource` is not empty, with native devices of that resource.

    GPUs of native devices are in their mode already, because kubelet hands them out.
    """

    def __init__(self, plan: PreparationPlan, node: NodeContext, clients: GrantClients, resource: str) -> None:
        self._plan = plan
        self._record = node.record
        self._clients = clients
        self._resource = resource
        containers = () if resource else plan.containers.values()
        self.shares = [share for each in containers for share in each.container.shares]

    def check(self) -> None:
        starting = self._plan.names.values()
        wanted = [(gpu, GpuUse(bound.mode, self._resource)) for bound in starting for gpu in bound.gpus]
        others = [each for each in self._record.holdings if each.bound and each.name not in self._plan.names]
        usage.check_uses(wanted, others)
        usage.check_instances(starting, others)

    async def vacate(self) -> None:
        await self._clients.vacate(self.shares)

    def record(self) -> None:
        self._record.bind(self._plan.names)

    async def provide(self, devices: Mapping[Instance, str]) -> None:
        await self._clients.provide(self.shares)


class PreparationSteps:
    """Those of one node. `on_demand` and `clients` bring GPUs into the mode of shares."""

    def __init__(
        self, node: NodeContext, on_demand: GrantPartitioner, clients: GrantClients, write_limits: WriteLimits
    ) -> None:
        self._node = node
        self._record = node.record
        self._on_demand = on_demand
        self._clients = clients
        self.write_limits = write_limits

    async def take(self, plan: PreparationPlan, takers: Takers) -> None:
        """Make what the plan says. Raises LaminaError with the reason if that is not possible now.

        Nothing else runs between the check and the record.
        """
        takers.check()
        if takers.shares:
            await takers.vacate()
            takers.check()
        owners = {bound.pod_uid for bound in plan.names.values()}
        before = [each.name for each in self._record.holdings if each.bound and each.bound.pod_uid in owners]
        started_with = self._devices_of({*before, *plan.names})
        takers.record()
        devices = await self._partition(takers.shares, started_with)
        await takers.provide(devices)
        if plan.names.keys() - self._record.names:
            raise NotYet("the pod was released while its container was starting")
        write_plan(plan, self._node.files, self.write_limits, devices)

    async def take_for_pod(self, plan: PreparationPlan, resource: str = "") -> None:
        """The same for containers of one pod. `resource` is that of their native devices; empty for a grant."""
        await self.take(plan, PodTakers(plan, self._node, self._clients, resource))

    async def instances(self, names: Iterable[str], shares: Collection[Share]) -> Mapping[Instance, str]:
        """Bring the GPUs of recorded shares into their mode, as after a restart of the machine, and return the UUIDs of
        their MIG devices by instance. `names` are those by which containers started before."""
        return await self._partition(shares, self._devices_of(names))

    async def _partition(self, shares: Collection[Share], started_with: set[str]) -> Mapping[Instance, str]:
        return await self._on_demand.prepare(shares, started_with) if shares else {}

    def _devices_of(self, names: Iterable[str]) -> set[str]:
        """The devices with which containers started before by these CDI names, by UUID."""
        specs = [self._node.paths.cdi / cdi.file_name(name) for name in names]
        return {uuid for spec in specs for uuid in cdi.visible_devices(self._node.files.read(spec) or b"")}
