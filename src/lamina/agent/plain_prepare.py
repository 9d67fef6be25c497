"""Before a container starts to which kubelet gave GPUs or replicas: see that it may have them, and write its CDI spec.

Kubelet's choice is the GPU, so no grant is read but to make sure that there is none: a pod that was placed with shares
comes here only when its node changed its configuration meanwhile, and must not run without its limits.

With `memory` each replica is held to an equal part of its GPU's memory, as shares are: the facade is in the container.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set

from lamina.agent import answers, modes
from lamina.agent.as_before import AsBefore
from lamina.agent.cluster import Cluster
from lamina.agent.containers import write_limits
from lamina.agent.health import GpuState
from lamina.agent.holders import holding
from lamina.agent.mig.maker import at
from lamina.agent.mig.on_demand import needed_by
from lamina.agent.mps import edits
from lamina.agent.mps.edits import Edits
from lamina.agent.offer import Offer
from lamina.agent.plain import PlainKind, is_part, unit_of
from lamina.agent.plan import Places, Plan, execute, plan
from lamina.agent.record import Allocation, Record
from lamina.dialects.nvidia import NvidiaConfig
from lamina.errors import NotYet
from lamina.model.gpus import Mode
from lamina.model.grants import ContainerGrant, Share
from lamina.ports.files import Files
from lamina.ports.kubelet.podresources import PodResources

Joins = Callable[[str, str], Edits]
"""What a container gets beside the GPU, by resource and UUID. Raises NotYet while that cannot be had."""

Uncut = Callable[[Iterable[str]], Awaitable[None]]
"""Raises NotYet for a GPU that is cut by MIG at this moment, and Outside."""


def nothing_more(resource: str, gpu: str) -> Edits:
    """Of a container that finds all it needs on the GPU."""
    return edits.NONE


log = logging.getLogger(__name__)


class PlainPreparer:
    """Prepares the containers of one node that hold devices of one resource."""

    def __init__(
        self,
        *,
        node: str,
        kind: PlainKind,
        mode: Mode,
        memory: bool,
        config: NvidiaConfig,
        record: Record,
        pod_resources: PodResources,
        cluster: Cluster,
        offer: Offer,
        places: Places,
        files: Files,
        uncut: Uncut,
        joins: Joins = nothing_more,
    ) -> None:
        """`mode` is the one in which GPUs are given out."""
        self._node = node
        self._kind = kind
        self._mode = mode
        self._memory = memory and kind.replicated
        self._config = config
        self._record = record
        self._pod_resources = pod_resources
        self._cluster = cluster
        self._offer = offer
        self._places = places
        self._files = files
        self._uncut = uncut
        self._joins = joins
        self._as_before = AsBefore(kind.resource, record, offer, places, files)

    async def prepare(self, ids: Iterable[str]) -> Plan:
        """Make what the holder of these devices needs. Raises LaminaError with the reason if that fails."""
        devices = frozenset(ids)
        if not self._kind.covers(devices) and self._as_before.knows(devices):
            return await self._as_before.prepare(devices)
        found = holding(devices, await self._pod_resources.holders({self._kind.resource}))
        name = f"{found.namespace}/{found.pod}"
        pod = await self._cluster.pod(found.namespace, found.pod)
        if pod is None or pod.node != self._node:
            raise NotYet(f"kubelet lists {name} on {self._node}, but Kubernetes does not")
        if await self._cluster.grant(found.namespace, found.pod, pod.uid) is not None:
            raise NotYet(
                f"{name} was placed with shares, and the node gives out {self._kind.resource} now; make it anew"
            )
        await self._uncut(sorted({unit for unit in map(unit_of, devices) if not is_part(unit)}))
        gpus = self._offer.units if self._mode is Mode.MPS else self._offer.beside_mps
        if gone := sorted({unit for unit in map(unit_of, devices) if is_part(unit) and unit not in gpus}):
            raise NotYet(f"the MIG device {', '.join(gone)} is not there any more; make {name} anew")
        # Containers that hold the same devices one after the other get the same, whichever of them starts.
        container = ContainerGrant(name=found.container or "init", shares=self._shares(devices, gpus))
        known = self._record.of(devices, self._kind.resource)
        ours = [each for each in known if each.bound is None or each.bound.pod_uid == pod.uid]
        if not ours:
            raise NotYet(f"no name was given out for these devices of {name}; make the pod anew")
        planned = plan(
            dict.fromkeys([each.name for each in ours], container),
            namespace=found.namespace,
            pod=found.pod,
            pod_uid=pod.uid,
            gpus=gpus,
            places=self._places,
            held=self._memory,
            visible=self._visible(container),
            more=self._more(container),
        )
        self._check_modes(planned, devices)
        execute(planned, gpus, self._record, self._files, write_limits)
        log.info("Prepared %s: %s on %s", name, container.name, ", ".join(sorted(map(unit_of, devices))))
        return planned

    def _check_modes(self, planned: Plan, devices: Set[str]) -> None:
        """Raises NotYet where grants have a GPU, or a MIG instance, since kubelet was told of it."""
        others = [each for each in self._record.allocations if each.name not in planned.names]
        modes.check(planned.names.values(), others, plain=True)
        if not self._kind.replicated:
            self._check_alone(devices, others)
        units = {unit for bound in planned.names.values() for unit in bound.gpus}
        granted = needed_by(self._record)
        for device in self._offer.mig_devices:
            if device.uuid in units and at(device.gpu, device.instance) in granted:
                raise NotYet(f"the MIG device {device.uuid} was granted to another pod meanwhile")

    def _check_alone(self, devices: Set[str], others: Iterable[Allocation]) -> None:
        """Raises NotYet where a GPU that is given out whole would be in the hands of two.

        Kubelet also knows replicas that containers hold from before, when the node shared the GPU. It may give one to a
        new pod as soon as its holder has ended.
        """
        units = set(map(unit_of, devices))
        for other in others:
            handed_on = other.resource == self._kind.resource and devices & other.tickets
            if other.bound is not None and not handed_on and units & set(map(unit_of, other.tickets)):
                raise NotYet(
                    f"{', '.join(sorted(units))} is given out whole by now, and {other.bound.namespace}/"
                    f"{other.bound.pod} has a replica from before; wait for its end, or make the pod anew"
                )

    def _more(self, container: ContainerGrant) -> Edits:
        """A container has replicas of one GPU where anything more is needed."""
        return self._joins(self._kind.resource, container.shares[0].gpu)

    def _shares(self, devices: Iterable[str], gpus: Mapping[str, GpuState]) -> tuple[Share, ...]:
        counts: dict[str, int] = {}
        for device in devices:
            counts[unit_of(device)] = counts.get(unit_of(device), 0) + 1
        return tuple(self._share(gpu, count, gpus.get(gpu)) for gpu, count in counts.items())

    def _visible(self, container: ContainerGrant) -> str:
        units = [share.gpu for share in container.shares]
        return answers.visible(answers.known(units, self._offer.gpus, self._offer.mig_devices), self._config)

    def _share(self, gpu: str, count: int, state: GpuState | None) -> Share:
        there = (state.facts.memory_mib or 0) if state is not None else 0
        if state is not None and state.facts.mig_enabled:
            raise NotYet(f"{gpu} is cut by MIG and has nothing to share")
        mode = Mode.MIG if is_part(gpu) else self._mode
        if not self._memory:
            return Share(gpu=gpu, memory_mib=there, mode=mode)
        if is_part(gpu):
            raise NotYet(
                "nvidia.replicaMemory is equal, but the memory of a MIG device cannot be divided; set it to shared, or "
                "cut the GPU into smaller devices"
            )
        part = there * count // self._kind.offer.replicas
        if not part:
            raise NotYet(f"{gpu} does not tell its memory, of which each replica is to get an equal part")
        return Share(gpu=gpu, memory_mib=part, mode=mode)
