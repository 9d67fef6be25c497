"""Before a container with tickets starts: find out which container it is, read its grant, and make what it needs.

First kubelet and the API server are asked, and each answer is checked against the others. Then come the steps: check
modes and bind the names to their containers in the record, bring the GPUs into their mode, create MIG instances, start
MPS daemons, make the containers' directories, write the CDI specs. The record knows everything before it is made, so
an interrupted start leaves nothing unknown, and kubelet's next call repeats all of it. Directories are always made
again: none of the containers that share a set of tickets runs while one of them starts.

Every doubt is an error that kubelet shows in the pod's status before it asks again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import structs

from lamina.agent.containers import cdi
from lamina.agent.containers.paths import write_limits
from lamina.agent.context import NodeContext
from lamina.agent.devices import usage
from lamina.agent.devices.tickets import TicketKind
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.container_identity import Owner, assign_names, owner_of
from lamina.agent.prepare.plan import PodRef, PreparationPlan, WriteLimits, execute_plan, make_plan
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Instance
from lamina.core.grants import Grant
from lamina.core.sizes import usable
from lamina.errors import BadInput, NotYet

log = logging.getLogger(__name__)


class TicketPreparer:
    """Prepares the containers of one node with one kind of tickets."""

    def __init__(
        self,
        node: NodeContext,
        kind: TicketKind,
        on_demand: GrantPartitioner,
        clients: GrantClients,
        *,
        gpus: Callable[[], Mapping[str, ObservedGpu]],
        release_gone: Callable[[], Awaitable[None]],
        write_limits: WriteLimits = write_limits,
    ) -> None:
        """`gpus` returns what containers with grants may use; `release_gone` releases what pods had that are gone."""
        self._node = node
        self._record = node.record
        self._kind = kind
        self._on_demand = on_demand
        self._clients = clients
        self._gpus = gpus
        self._release_gone = release_gone
        self._write_limits = write_limits

    async def prepare(self, ids: Iterable[str]) -> None:
        """Make everything that the owner of these tickets needs. Raises LaminaError with the reason if that fails."""
        tickets = frozenset(ids)
        owner = await owner_of(tickets, self._kind.resource, self._node)
        grant = await self._grant(owner)
        allocations = self._record.of(tickets, self._kind.resource)
        containers = assign_names(allocations, grant, owner.container, tickets, self._kind, known_inits=owner.inits)
        pod = PodRef(owner.namespace, owner.pod, grant.pod_uid)
        edits = {name: self._clients.edits(each, self._kind.resource) for name, each in containers.items()}
        plan = make_plan(containers, pod, self._gpus(), self._node.paths, edits=edits)
        try:
            devices = await self._bring_into_mode(plan, grant.pod_uid)
        except (NotYet, BadInput):
            await self._release_gone()  # what is in the way may belong to a pod that is gone
            devices = await self._bring_into_mode(plan, grant.pod_uid)
        execute_plan(plan, self._record, self._node.files, self._write_limits, devices)
        names = ", ".join(sorted({bound.container for bound in plan.names.values()}))
        log.info("Prepared %s: %s", owner.name, names)

    async def _bring_into_mode(self, plan: PreparationPlan, pod_uid: str) -> Mapping[Instance, str]:
        """Bind the names, and bring the GPUs into the mode of the containers. Returns the MIG devices by instance."""
        shares = [share for container in plan.containers.values() for share in container.container.shares]
        self._check_modes(plan)
        await self._clients.vacate(shares)
        self._check_modes(plan)  # again, because that took time
        started_with = self._devices_of_earlier_starts(pod_uid)
        self._record.bind(plan.names)
        devices = await self._on_demand.prepare(shares, started_with)
        await self._clients.provide(shares)
        if plan.names.keys() - {allocation.name for allocation in self._record.allocations}:
            raise NotYet("the pod was released while its container was starting")
        return devices

    def _check_modes(self, plan: PreparationPlan) -> None:
        others = [allocation for allocation in self._record.allocations if allocation.name not in plan.names]
        usage.check_modes(plan.names.values(), others)
        self._node.record.require_unclaimed({gpu for bound in plan.names.values() for gpu in bound.gpus})

    def _devices_of_earlier_starts(self, pod_uid: str) -> set[str]:
        names = [each.name for each in self._record.allocations if each.bound and each.bound.pod_uid == pod_uid]
        specs = [self._node.paths.cdi / cdi.file_name(name) for name in names]
        return {uuid for spec in specs for uuid in cdi.visible_devices(self._node.files.read(spec) or b"")}

    async def _grant(self, owner: Owner) -> Grant:
        node, name = self._node.node, owner.name
        grant = await self._node.cluster.get_grant(owner.namespace, owner.pod, owner.pod_uid)
        if grant is None:
            raise NotYet(f"pod {name} has no grant; on this node only pods placed by Lamina's scheduler get GPUs")
        if grant.pod_uid != owner.pod_uid:
            raise NotYet(f"the grant of pod {name} is for UID {grant.pod_uid}, but the pod has {owner.pod_uid}")
        if grant.node != node:
            raise NotYet(f"the grant of pod {name} is for node {grant.node}, but the pod is on {node}")
        return structs.replace(grant, containers=tuple(map(usable, grant.containers)))
