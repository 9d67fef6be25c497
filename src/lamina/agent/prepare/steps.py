"""The steps from a plan to a container that may start, the same for grants and native devices.

Check that nothing else has the GPUs in another way and bind the names to their containers in the record, bring the GPUs
into their mode, create MIG instances, start MPS daemons, make the containers' directories, write the CDI specs. The
record knows everything before it is made, so an interrupted start leaves nothing unknown, and kubelet's next call
repeats all of it. Directories are always made again: none of the containers that share a set of devices runs while one
of them starts.
"""

from lamina.agent.containers import cdi
from lamina.agent.context import NodeContext
from lamina.agent.devices import usage
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.plan import PreparationPlan, WriteLimits, execute_plan
from lamina.errors import NotYet


class PreparationSteps:
    """For the containers of one node's pods. `on_demand` and `clients` bring GPUs into the mode of grants."""

    def __init__(
        self, node: NodeContext, on_demand: GrantPartitioner, clients: GrantClients, write_limits: WriteLimits
    ) -> None:
        self._node = node
        self._record = node.record
        self._on_demand = on_demand
        self._clients = clients
        self._write_limits = write_limits

    async def take(self, plan: PreparationPlan, *, native: bool = False) -> None:
        """Make what the plan says. `native`: GPUs are in their mode already, because kubelet hands them out.

        Raises LaminaError with the reason if that is not possible now. Nothing else runs between the check of native
        devices and their record.
        """
        granted = [] if native else [share for each in plan.containers.values() for share in each.container.shares]
        self._check(plan, native=native)
        if granted:
            await self._clients.vacate(granted)
            self._check(plan, native=native)  # again, because that took time
        started_with = self._devices_of_earlier_starts({bound.pod_uid for bound in plan.names.values()})
        self._record.bind(plan.names)
        devices = await self._on_demand.prepare(granted, started_with) if granted else {}
        await self._clients.provide(granted)
        if plan.names.keys() - self._record.names:
            raise NotYet("the pod was released while its container was starting")
        execute_plan(plan, self._record, self._node.files, self._write_limits, devices)

    def _check(self, plan: PreparationPlan, *, native: bool) -> None:
        others = [each for each in self._record.allocations if each.name not in plan.names]
        usage.check_modes(plan.names.values(), others, native=native)
        self._record.require_unclaimed({gpu for bound in plan.names.values() for gpu in bound.gpus})

    def _devices_of_earlier_starts(self, pod_uids: set[str]) -> set[str]:
        """The devices with which containers of these pods started before, by UUID."""
        names = [each.name for each in self._record.allocations if each.bound and each.bound.pod_uid in pod_uids]
        specs = [self._node.paths.cdi / cdi.file_name(name) for name in names]
        return {uuid for spec in specs for uuid in cdi.visible_devices(self._node.files.read(spec) or b"")}
