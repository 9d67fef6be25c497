"""Before a container starts: find out whose it is, read its grant, and make what its start needs.

The questions come first (kubelet, the pod, its grant), each answer checked against the others. Then come the steps:
bind the names to their containers in the record, bring the GPUs into their mode and make MIG instances, make the
containers' folders, write the CDI specs. The record knows of everything before it is made, so a start cut off anywhere
leaves nothing unknown, and kubelet's next call repeats all of it. A folder is always made anew: none of the containers
that share a set of tickets runs while one of them is being started.

Every doubt is an error whose sentence kubelet shows in the pod's status before it asks again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from lamina.agent import cdi, modes
from lamina.agent.cluster import Cluster
from lamina.agent.health import GpuState
from lamina.agent.holders import Holding, assigned, holding
from lamina.agent.mig.on_demand import OnDemand
from lamina.agent.plan import Places, Plan, WriteLimits, execute, plan
from lamina.agent.record import Instance, Record
from lamina.agent.tickets import Kind
from lamina.errors import BadInput, NotYet
from lamina.model.grants import ContainerGrant, Grant
from lamina.ports.files import Files
from lamina.ports.kubelet.podresources import PodResources

log = logging.getLogger(__name__)


class Preparer:
    """Prepares the containers of one node that hold one kind of tickets."""

    def __init__(
        self,
        *,
        node: str,
        kind: Kind,
        record: Record,
        pod_resources: PodResources,
        cluster: Cluster,
        gpus: Callable[[], Mapping[str, GpuState]],
        places: Places,
        files: Files,
        write_limits: WriteLimits,
        on_demand: OnDemand,
        sweep: Callable[[], Awaitable[None]],
    ) -> None:
        """`sweep` releases what pods had that have gone."""
        self._node = node
        self._kind = kind
        self._record = record
        self._pod_resources = pod_resources
        self._cluster = cluster
        self._gpus = gpus
        self._places = places
        self._files = files
        self._write_limits = write_limits
        self._on_demand = on_demand
        self._sweep = sweep

    async def prepare(self, ids: Iterable[str]) -> Plan:
        """Make everything that the holder of these tickets needs. Raises LaminaError with the reason if that fails."""
        tickets = frozenset(ids)
        found = holding(tickets, await self._pod_resources.holders({self._kind.resource}))
        grant = await self._grant(found)
        allocations = self._record.of(tickets, self._kind.resource)
        gpus = self._gpus()
        containers = assigned(allocations, grant, found.container, tickets, self._kind)
        planning = partial(
            plan,
            containers,
            namespace=found.namespace,
            pod=found.pod,
            pod_uid=grant.pod_uid,
            gpus=gpus,
            places=self._places,
        )
        begun = planning()
        try:
            devices = await self._in_mode(begun, containers.values(), grant.pod_uid)
        except (NotYet, BadInput):
            await self._sweep()  # what is in the way may be of a pod that has gone
            devices = await self._in_mode(begun, containers.values(), grant.pod_uid)
        planned = planning(devices=devices)
        execute(planned, gpus, self._record, self._files, self._write_limits)
        started = ", ".join(sorted({bound.container for bound in planned.names.values()}))
        log.info("Prepared %s/%s: %s", found.namespace, found.pod, started)
        return planned

    async def _in_mode(self, begun: Plan, containers: Iterable[ContainerGrant], pod_uid: str) -> Mapping[Instance, str]:
        """Bind the names, and bring the GPUs into the mode of the containers; the MIG devices by instance."""
        modes.check(begun.names.values(), [each for each in self._record.allocations if each.name not in begun.names])
        known = [(each.name, each.bound) for each in self._record.allocations if each.bound is not None]
        specs = [self._places.cdi / cdi.file_name(name) for name, bound in known if bound.pod_uid == pod_uid]
        before = {uuid for spec in specs for uuid in cdi.visible(self._files.read(spec) or b"")}
        self._record.bind(begun.names)
        devices = await self._on_demand.ready([share for each in containers for share in each.shares], before)
        if begun.names.keys() - {a.name for a in self._record.allocations}:
            raise NotYet("the pod was released while its container was being started")
        return devices

    async def _grant(self, found: Holding) -> Grant:
        name = f"{found.namespace}/{found.pod}"
        pod = await self._cluster.pod(found.namespace, found.pod)
        if pod is None:
            raise NotYet(f"Kubernetes has no pod {name} any more")
        if pod.node != self._node:
            raise NotYet(f"kubelet lists {name} on {self._node}, but Kubernetes has it on {pod.node or 'no node'}")
        grant = await self._cluster.grant(found.namespace, found.pod, pod.uid)
        if grant is None:
            raise NotYet(f"{name} has no grant; only pods placed by Lamina's scheduler get GPUs on this node")
        if grant.pod_uid != pod.uid:
            raise NotYet(f"the grant of {name} is for the pod with UID {grant.pod_uid}, but this one has {pod.uid}")
        if grant.node != self._node:
            raise NotYet(f"the grant of {name} is for node {grant.node}, but the pod is on {self._node}")
        return grant
