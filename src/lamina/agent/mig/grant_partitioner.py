"""MIG instances for grants and claims: created before their container starts, destroyed when it is gone.

Nothing is remembered except the notes of what Lamina made and the record of each container's place. Both are compared
with the GPUs at every look, so the next look corrects what a crash, a reboot or a person left behind. An instance that
Lamina did not make is used if it lies where a grant says and nothing uses it, and is never destroyed. The MIG mode of
an unused GPU is switched to what the next container needs.
"""

import logging
from collections.abc import Iterable, Mapping, Set
from typing import Protocol

from lamina.agent.context import NodeContext
from lamina.agent.inventory.builder import OnDemandInstances
from lamina.agent.mig.apply import pods_using, processes_using
from lamina.agent.mig.maker import MigMaker, instance_at
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Instance, instance_of
from lamina.core.gpus import Mode
from lamina.core.grants import Share
from lamina.core.mig import Placed
from lamina.errors import NotYet, Outside
from lamina.ports.nvml import GpuFacts, MigInstanceFacts
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)


class NodeGpus(Protocol):
    """What instances on demand need to know of the node's GPUs, and where they report. An NodeOfferStore is one."""

    @property
    def gpus(self) -> Mapping[str, ObservedGpu]: ...

    @property
    def resources(self) -> Set[str]:
        """The resources by which kubelet hands out GPUs and MIG devices."""
        ...

    @property
    def partitionable(self) -> Set[str] | None:
        """The GPUs that grants may partition; None while that is not known."""
        ...

    def update(self, *, on_demand: OnDemandInstances) -> None: ...


class GrantPartitioner:
    """The instances of one node."""

    def __init__(self, node: NodeContext, gpus: NodeGpus, maker: MigMaker) -> None:
        self._node = node
        self._gpus = gpus
        self._maker = maker
        self._dismantle = not node.config.enabled
        """Whether what the node's label asked for is removed too."""

    async def run(self) -> None:
        """Reconcile forever."""
        failures = FailureLog(log, "Cannot manage MIG instances: %s")
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s, failures=failures)

    async def prepare(self, shares: Iterable[Share], started_with: Set[str]) -> dict[Instance, str]:
        """Bring the GPUs into the mode of these shares, and return the UUIDs of the MIG devices by instance.

        The record already has the shares. `started_with` are the UUIDs of devices with which containers of the pod
        started before. Raises NotYet, BadInput or Outside with the reason why that is not possible now.
        """
        devices = {}
        granted = list(shares)
        async with self._maker.turn:
            for gpu in {share.gpu for share in granted if share.mode is not Mode.MIG}:
                await self._disable_mig(gpu)
            for share in granted:
                if (instance := instance_of(share)) is not None:
                    devices[instance] = await self._provide(instance, started_with)
                elif share.mode is Mode.MIG:
                    raise NotYet(f"the grant has a MIG instance of {share.gpu}, but does not say which")
        return devices

    async def require_unpartitioned(self, gpus: Iterable[str]) -> None:
        """Raises NotYet if one of these GPUs has been partitioned since NVML was last polled, and Outside.

        The record already says that a container has them.
        """
        async with self._maker.turn:
            for gpu in gpus:
                if self._is_capable(gpu) and (facts := await self._maker.facts(gpu)).mig_enabled:
                    raise _partitioned(facts)

    async def reconcile(self) -> None:
        """Remove what no container needs. Raises Outside once all GPUs have had their turn."""
        left: list[str] = []
        used: set[Instance] = set()
        failure: Outside | None = None
        aside, ownership = self._node.aside, self._maker.ownership
        async with self._maker.turn:
            for gpu in sorted(self._gpus.gpus.keys() & (ownership.gpus | (self._gpus.partitionable or set()))):
                owned = gpu in ownership.gpus
                try:
                    left += await self._tidy(gpu) if owned else ()
                    used |= await self._used_without_grant(gpu)
                except Exception as error:
                    left += [str(error) or type(error).__name__] if owned else ()
                    if isinstance(error, Outside):
                        failure = failure or error
                    else:
                        aside.add("MIG instances", gpu, error)
                else:
                    aside.forget("MIG instances", gpu)
        self._gpus.update(on_demand=OnDemandInstances(ownership.instances, used, tuple(dict.fromkeys(left))))
        if failure is not None:
            raise failure

    async def _used_without_grant(self, gpu: str) -> set[Instance]:
        """The instances of a GPU that something uses without a grant, if grants may partition it."""
        if not self._may_partition(gpu):
            return set()
        required = required_instances(self._node)
        existing = {instance_at(gpu, each): each for each in await self._maker.nvml.mig_instances(gpu)}
        others = {instance: device for instance, device in existing.items() if instance not in required}
        users = await self._users(others.values())
        return {instance for instance, device in others.items() if device.uuid in users}

    async def _disable_mig(self, gpu: str) -> None:
        if not self._is_capable(gpu):
            return
        facts = await self._maker.facts(gpu)
        if not facts.mig_enabled:
            return
        if not self._may_partition(gpu):
            raise _partitioned(facts)
        left = await self._tidy(gpu)
        if existing := await self._maker.nvml.mig_instances(gpu):
            not_ours = f"GPU {facts.index} has {_listed(existing)}, which Lamina did not make and must not destroy"
            raise NotYet("; ".join(left) or not_ours)
        await self._maker.set_mode(facts, False)
        log.info("Disabled the MIG mode of GPU %d", facts.index)

    async def _provide(self, instance: Instance, started_with: Set[str]) -> str:
        """The UUID of the MIG device, which is created if it does not exist."""
        facts, nvml = await self._maker.facts(instance.gpu), self._maker.nvml
        if not facts.mig_enabled:
            await self._enable_mig(facts)
        device = _device_at(await nvml.mig_instances(instance.gpu), instance)
        if device is not None and device.uuid:
            if device.uuid not in started_with and (users := await self._users([device])):
                names = ", ".join(users[device.uuid])
                raise NotYet(f"{_listed([device])} of GPU {facts.index} is in use by {names}")
            return device.uuid
        self._check_may_partition(facts)
        if device is not None and instance not in self._maker.ownership.instances:
            where = f"{_listed([device])} of GPU {facts.index}"
            raise NotYet(f"{where} has no compute instance, and Lamina did not make it")
        if device is not None:
            await self._maker.destroy(instance.gpu, device)
        await self._tidy(instance.gpu)
        place = Placed(instance.profile, instance.start)
        others = [Placed(each.profile, each.start) for each in await nvml.mig_instances(instance.gpu)]
        (await nvml.mig_card(instance.gpu)).check([*others, place])
        self._maker.ownership.note_label(instance.gpu, labelled=False)
        created = await self._maker.create(instance.gpu, place)
        log.info("Created %s on GPU %d", _listed([created]), facts.index)
        return created.uuid

    async def _enable_mig(self, facts: GpuFacts) -> None:
        self._check_may_partition(facts)
        if processes := await self._processes(facts.uuid):
            raise NotYet(f"cannot change the MIG mode of GPU {facts.index} while it is in use by {processes}")
        await self._maker.set_mode(facts, True)
        log.info("Enabled the MIG mode of GPU %d", facts.index)

    def _is_capable(self, gpu: str) -> bool:
        """Whether the GPU may have been partitioned since NVML was last polled."""
        observed = self._gpus.gpus.get(gpu)
        return observed is not None and (observed.facts.mig_capable or observed.facts.mig_enabled)

    def _may_partition(self, gpu: str) -> bool:
        return gpu in (self._gpus.partitionable or ())

    def _check_may_partition(self, facts: GpuFacts) -> None:
        if not self._may_partition(facts.uuid):
            raise NotYet(
                f"GPU {facts.index} may not be partitioned for a grant: the node's configuration or its label "
                "nvidia.com/mig.config does not allow it"
            )

    async def _tidy(self, gpu: str) -> list[str]:
        """Destroy what Lamina made on a GPU and no container needs. Returns a sentence for each thing that stays."""
        ownership, partitionable = self._maker.ownership, self._gpus.partitionable
        by_label = gpu in ownership.labelled and gpu not in (partitionable or ())
        if partitionable is None or (by_label and not self._dismantle):
            return []
        index, left = self._gpus.gpus[gpu].facts.index, []
        required = {instance for instance in required_instances(self._node) if instance.gpu == gpu}
        unneeded = {instance for instance in ownership.instances if instance.gpu == gpu} - required
        existing = await self._maker.nvml.mig_instances(gpu) if unneeded else ()
        for instance in sorted(unneeded):
            if reason := await self._destroy(instance, existing):
                left.append(f"GPU {index} keeps {instance.profile} at {instance.start}: {reason}")
        if gpu in ownership.modes and gpu not in partitionable and not required and not left:
            left += await self._restore_mode(gpu)
        return left

    async def _restore_mode(self, gpu: str) -> list[str]:
        """Disable a MIG mode that Lamina enabled. Returns why it stays, if it does."""
        facts = await self._maker.facts(gpu)
        keeps = f"GPU {facts.index} keeps its MIG mode"
        if existing := await self._maker.nvml.mig_instances(gpu):
            return [f"{keeps}: Lamina did not make {_listed(existing)}"]
        if processes := await self._processes(gpu):
            return [f"{keeps}: it is in use by {processes}"]
        try:
            await self._maker.set_mode(facts, False)
        except NotYet as error:
            return [str(error)]
        return []

    async def _destroy(self, instance: Instance, existing: Iterable[MigInstanceFacts]) -> str:
        """Destroy an instance that Lamina made. Returns why it stays, if it does."""
        device = _device_at(existing, instance)
        if device is None:
            self._maker.ownership.forget(instance)
            return ""
        if users := await self._users([device]):
            return f"it is in use by {', '.join(users[device.uuid])}"
        try:
            await self._maker.destroy(instance.gpu, device)
        except Outside as error:
            return str(error)
        log.info("Destroyed %s of %s", _listed([device]), instance.gpu)
        return ""

    async def _users(self, instances: Iterable[MigInstanceFacts]) -> dict[str, list[str]]:
        """Who uses these instances without a grant, by the UUIDs of their devices."""
        uuids = [each.uuid for each in instances if each.uuid]
        if not uuids:
            return {}
        pods = await pods_using(self._node, self._gpus.resources)
        running = await processes_using(self._maker.nvml, uuids)
        return running | {uuid: pods[uuid] for uuid in uuids if uuid in pods}

    async def _processes(self, gpu: str) -> str:
        return ", ".join((await processes_using(self._maker.nvml, [gpu])).get(gpu, ()))


def required_instances(node: NodeContext) -> frozenset[Instance]:
    """The instances that containers have, by grants and by claims."""
    return frozenset(instance for bound in node.record.containers for instance in bound.instances)


def _partitioned(facts: GpuFacts) -> NotYet:
    return NotYet(f"GPU {facts.index} is partitioned by MIG and cannot be shared")


def _device_at(existing: Iterable[MigInstanceFacts], instance: Instance) -> MigInstanceFacts | None:
    return next((each for each in existing if instance_at(instance.gpu, each) == instance), None)


def _listed(instances: Iterable[MigInstanceFacts]) -> str:
    return ", ".join(f"{each.profile} at {each.start}" for each in instances)
