"""Before a container with a grant or with native devices starts: find out which container it is, and what it may have.

Kubelet and the API server are asked, and each answer is checked against the others. Every doubt is an error that
kubelet shows in the pod's status before it asks again.

Native devices were chosen by kubelet, so the grant is read only to make sure that there is none: a pod that was placed
with shares gets here only if its node changed its configuration since, and must not run without its limits. Containers
with devices that the node no longer advertises may restart with the files that they have; nothing new is made for them.
If replicas have a memory limit, each may use an equal part of its GPU's memory, enforced by the facade as for shares.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import structs

from lamina.agent.containers import cdi
from lamina.agent.context import NodeContext
from lamina.agent.inventory.native_devices import NativeKind, is_mig_device, unit_uuid
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.tickets import TicketKind
from lamina.agent.mig.grant_partitioner import required_instances
from lamina.agent.mig.maker import instance_at
from lamina.agent.mps.clients import NO_EDITS, ClientEdits
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.allocate_response import assigned_devices, visible_devices
from lamina.agent.prepare.container_identity import Owner, assign_names, owner_of
from lamina.agent.prepare.plan import PodRef, PreparationPlan, make_plan
from lamina.agent.prepare.steps import PreparationSteps
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import DeviceIds, Holding
from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Grant, Share
from lamina.core.sizes import usable
from lamina.errors import BadInput, NotYet

log = logging.getLogger(__name__)


class TicketPreparer:
    """Prepares the containers of one node with one kind of tickets."""

    def __init__(
        self,
        node: NodeContext,
        kind: TicketKind,
        steps: PreparationSteps,
        clients: GrantClients,
        *,
        gpus: Callable[[], Mapping[str, ObservedGpu]],
        release_gone: Callable[[], Awaitable[None]],
    ) -> None:
        """`gpus` returns what containers with grants may use; `release_gone` releases what pods had that are gone."""
        self._node = node
        self._kind = kind
        self._steps = steps
        self._clients = clients
        self._gpus = gpus
        self._release_gone = release_gone

    async def prepare(self, ids: Iterable[str]) -> None:
        """Make everything that the owner of these tickets needs. Raises LaminaError with the reason if that fails."""
        tickets = frozenset(ids)
        owner = await owner_of(tickets, self._kind.resource, self._node)
        grant = await self._grant(owner)
        allocations = self._node.record.of(tickets, self._kind.resource)
        containers = assign_names(allocations, grant, owner.container, tickets, self._kind, known_inits=owner.inits)
        pod = PodRef(owner.namespace, owner.pod, grant.pod_uid)
        edits = {name: self._clients.edits(each, self._kind.resource) for name, each in containers.items()}
        plan = make_plan(containers, pod, self._gpus(), self._node.paths, edits=edits)
        try:
            await self._steps.take_for_pod(plan)
        except (NotYet, BadInput):
            await self._release_gone()  # a deleted pod may hold what is in the way
            await self._steps.take_for_pod(plan)
        names = ", ".join(sorted({bound.container for bound in plan.names.values()}))
        log.info("Prepared %s: %s", owner.name, names)

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


class StaleDevicePreparer:
    """Containers with devices of a resource that the node no longer advertises start with the files that they have."""

    def __init__(self, resource: str, node: NodeContext, offers: NodeOfferStore) -> None:
        self._resource = resource
        self._node = node
        self._offers = offers

    def is_prepared(self, devices: DeviceIds) -> bool:
        """Whether everything that the containers with these devices need was made before."""
        specs = [self._node.paths.cdi / cdi.file_name(each.name) for each in self._of(devices) if each.bound]
        return 0 < len(specs) == len(self._of(devices)) and None not in map(self._node.files.read, specs)

    async def prepare(self, ids: Iterable[str]) -> None:
        """Raises NotYet if nothing was made before, or for MPS clients whose daemon is not ready: without it a program
        would run without limits."""
        devices = frozenset(ids)
        if not self.is_prepared(devices):
            raise NotYet("the node no longer advertises these devices; delete and recreate the pod")
        for bound in (each.bound for each in self._of(devices) if each.bound is not None):
            for gpu in bound.gpus if bound.mode is Mode.MPS else ():
                daemon = self._offers.daemon(gpu)
                if daemon is None or not daemon.ready:
                    raise NotYet(f"the container is an MPS client on {gpu}, whose daemon is not ready")

    def _of(self, devices: DeviceIds) -> tuple[Holding, ...]:
        return self._node.record.of(devices, self._resource)


def _no_edits(resource: str, gpu: str) -> ClientEdits:
    return NO_EDITS


class NativeRules(NamedTuple):
    """How native devices are handed out.

    `mode` is the mode of whole GPUs and replicas; `limit_memory`: replicas have a memory limit. `edits` returns what a
    container needs in addition, by resource and UUID, and raises NotYet while that is unavailable.
    `require_unpartitioned` raises NotYet for a GPU that is partitioned at this moment, and Outside.
    """

    mode: Mode
    limit_memory: bool
    config: NvidiaConfig
    require_unpartitioned: Callable[[Iterable[str]], Awaitable[None]]
    edits: Callable[[str, str], ClientEdits] = _no_edits


class NativePreparer:
    """Prepares the containers of one node with native devices of one resource."""

    def __init__(
        self,
        node: NodeContext,
        kind: NativeKind,
        rules: NativeRules,
        offers: NodeOfferStore,
        steps: PreparationSteps,
    ) -> None:
        self._node = node
        self._record = node.record
        self._steps = steps
        self._kind = kind
        self._rules = rules
        self._limit_memory = rules.limit_memory and kind.replicated
        self._offers = offers
        self._stale = StaleDevicePreparer(kind.resource, node, offers)

    async def prepare(self, ids: Iterable[str]) -> None:
        """Make what the owner of these devices needs. Raises LaminaError with the reason if that fails."""
        devices = frozenset(ids)
        if not self._kind.covers(devices) and self._stale.is_prepared(devices):
            await self._stale.prepare(devices)
            return
        owner = await owner_of(devices, self._kind.resource, self._node)
        name = owner.name
        if await self._node.cluster.get_grant(owner.namespace, owner.pod, owner.pod_uid) is not None:
            raise NotYet(
                f"pod {name} holds a share, but this node now advertises {self._kind.resource} as native devices; "
                "delete and recreate the pod"
            )
        units = sorted(set(map(unit_uuid, devices)))
        await self._rules.require_unpartitioned([unit for unit in units if not is_mig_device(unit)])
        state = self._offers.state
        gpus = state.units if self._rules.mode is Mode.MPS else state.units_without_mps
        if missing := [unit for unit in units if is_mig_device(unit) and unit not in gpus]:
            raise NotYet(
                f"pod {name} holds {', '.join(missing)}, but this MIG device no longer exists; delete and recreate it"
            )
        # Containers with the same devices run one after the other and get the same, whichever of them starts.
        container = ContainerGrant(name=owner.container or "init", shares=self._shares(devices, gpus))
        allocations = self._record.of(devices, self._kind.resource)
        own = [each for each in allocations if each.bound is None or each.bound.pod_uid == owner.pod_uid]
        if not own:
            raise NotYet(f"no Allocate call is on record for the devices of pod {name}; delete and recreate the pod")
        names = [allocation.name for allocation in own]
        plan = make_plan(
            dict.fromkeys(names, container),
            PodRef(owner.namespace, owner.pod, owner.pod_uid),
            gpus,
            self._node.paths,
            limited=self._limit_memory,
            visible=self._visible(container),
            # Only containers with replicas of a single GPU need edits.
            edits=dict.fromkeys(names, self._rules.edits(self._kind.resource, container.shares[0].gpu)),
        )
        self._check_holders(plan, devices)
        await self._steps.take_for_pod(plan, self._kind.resource)
        log.info("Prepared %s: %s on %s", name, container.name, ", ".join(units))

    def _check_holders(self, plan: PreparationPlan, devices: Set[str]) -> None:
        """Raises NotYet if a grant got a MIG instance, or another container a replica, after kubelet last saw the
        devices."""
        if not self._kind.replicated:
            others = [each for each in self._record.allocations if each.name not in plan.names]
            self._check_sole_holder(devices, others)
        units = {unit for bound in plan.names.values() for unit in bound.gpus}
        granted = required_instances(self._node)
        for device in self._offers.state.mig_devices:
            if device.uuid in units and instance_at(device.gpu, device.instance) in granted:
                raise NotYet(f"the MIG device {device.uuid} has been granted to another pod")

    def _check_sole_holder(self, devices: Set[str], others: Iterable[Holding]) -> None:
        """Raises NotYet if a whole GPU would have two holders.

        Kubelet also knows replicas that containers still hold from the time when the node shared the GPU. It may assign
        one to a new pod as soon as its holder has ended.
        """
        units = set(map(unit_uuid, devices))
        for other in others:
            reassigned = other.resource == self._kind.resource and devices & other.tickets
            if other.bound is not None and not reassigned and units & set(map(unit_uuid, other.tickets)):
                holder = f"{other.bound.namespace}/{other.bound.pod}"
                raise NotYet(
                    f"{', '.join(sorted(units))} is no longer shared, but pod {holder} still holds a replica of it; "
                    "wait until that pod ends, or recreate this one"
                )

    def _shares(self, devices: Iterable[str], gpus: Mapping[str, ObservedGpu]) -> tuple[Share, ...]:
        counts: dict[str, int] = {}
        for device in devices:
            counts[unit_uuid(device)] = counts.get(unit_uuid(device), 0) + 1
        return tuple(self._share(unit, count, gpus.get(unit)) for unit, count in counts.items())

    def _visible(self, container: ContainerGrant) -> str:
        units = [share.gpu for share in container.shares]
        state = self._offers.state
        assigned = assigned_devices(units, state.gpus, state.mig_devices)
        return visible_devices(assigned, self._rules.config)

    def _share(self, unit: str, count: int, observed: ObservedGpu | None) -> Share:
        memory_mib = (observed.facts.memory_mib or 0) if observed is not None else 0
        if observed is not None and observed.facts.mig_enabled:
            raise NotYet(f"{unit} is partitioned by MIG and cannot be shared")
        mode = Mode.MIG if is_mig_device(unit) else self._rules.mode
        if not self._limit_memory:
            return Share(gpu=unit, memory_mib=memory_mib, mode=mode)
        if is_mig_device(unit):
            raise NotYet(
                "nvidia.replicaMemory is equal, but the memory of a MIG device cannot be divided; set it to shared, or "
                "partition the GPU into smaller devices"
            )
        part_mib = memory_mib * count // self._kind.offer.replicas
        if not part_mib:
            raise NotYet(f"cannot divide the memory of {unit} between replicas: NVML does not report its size")
        return Share(gpu=unit, memory_mib=part_mib, mode=mode)
