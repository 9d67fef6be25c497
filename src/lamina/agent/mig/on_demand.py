"""MIG as grants ask for it: an instance is made before its container starts, and destroyed when that is gone.

Nothing is remembered but the notes of what was made (`made`) and the record of which container has which place; both
are held against the GPUs again and again, so what a crash, a reboot or somebody else left is mended by the next look.
An instance that Lamina did not make is used where it lies just as a grant says and nobody is on it, and never
destroyed. A GPU changes its MIG mode when nobody is on it, to what the next container needs.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Set

from lamina.agent.health import GpuState
from lamina.agent.inventory import Divided
from lamina.agent.mig.maker import Maker, at
from lamina.agent.mig.users import holders, processes
from lamina.agent.offer import Offer
from lamina.agent.plan import instance_of
from lamina.agent.record import Instance, Record
from lamina.errors import NotYet, Outside
from lamina.model.gpus import Mode
from lamina.model.grants import Share
from lamina.model.mig import Placed
from lamina.ports.clock import Clock
from lamina.ports.kubelet.podresources import PodResources
from lamina.ports.nvml import GpuFacts, MigInstance

log = logging.getLogger(__name__)


class OnDemand:
    """One node's GPUs. `cuttable` are those that grants may cut now, None while that is not known."""

    def __init__(
        self,
        *,
        maker: Maker,
        record: Record,
        pod_resources: PodResources,
        gpus: Callable[[], Mapping[str, GpuState]],
        resources: Callable[[], Set[str]],
        cuttable: Callable[[], Set[str] | None],
        tell: Callable[[Divided], None],
        dismantle: bool,
    ) -> None:
        """`resources` are those by which kubelet gives out what needs no grant. `tell` hears what became of it.
        `dismantle`: what the node's label asked for goes as well."""
        self._maker = maker
        self._record = record
        self._pod_resources = pod_resources
        self._gpus = gpus
        self._resources = resources
        self._cuttable = cuttable
        self._tell = tell
        self._dismantle = dismantle

    @classmethod
    def of(
        cls, offer: Offer, maker: Maker, record: Record, pod_resources: PodResources, *, dismantle: bool
    ) -> "OnDemand":
        """By what a node offers."""
        return cls(
            maker=maker,
            record=record,
            pod_resources=pod_resources,
            gpus=lambda: offer.gpus,
            resources=lambda: offer.resources,
            cuttable=lambda: offer.cuttable,
            tell=offer.made,
            dismantle=dismantle,
        )

    async def ready(self, shares: Iterable[Share], before: Set[str]) -> dict[Instance, str]:
        """Bring the GPUs into the mode of these shares, which the record knows; the MIG device of each instance.

        `before` are the UUIDs of the devices with which the pod's containers started before. Raises NotYet, BadInput or
        Outside with the reason where that cannot be done now.
        """
        devices = {}
        wanted = list(shares)
        async with self._maker.turn:
            for gpu in {share.gpu for share in wanted if share.mode is not Mode.MIG}:
                await self._undivided(gpu)
            for share in wanted:
                if (instance := instance_of(share)) is not None:
                    devices[instance] = await self._device(instance, before)
                elif share.mode is Mode.MIG:
                    raise NotYet(f"the grant gives a MIG instance of {share.gpu} and does not say which")
        return devices

    async def uncut(self, gpus: Iterable[str]) -> None:
        """See that GPUs of which the record says who has them are not cut by MIG. Raises NotYet, Outside.

        The last look at them may have been before somebody cut them.
        """
        async with self._maker.turn:
            for gpu in gpus:
                if self._is_capable(gpu) and (facts := await self._maker.facts(gpu)).mig_enabled:
                    raise NotYet(f"GPU {facts.index} is cut by MIG and has nothing to share")

    async def sweep(self) -> None:
        """Take away what nobody needs. Raises Outside."""
        left: list[str] = []
        used: set[Instance] = set()
        made = self._maker.made
        try:
            async with self._maker.turn:
                for gpu in sorted(made.gpus & self._gpus().keys()):
                    left += await self._tidy(gpu)
                for gpu in sorted(self._cuttable() or ()):
                    used |= await self._used(gpu)
        except Outside as error:
            self._tell(Divided(made.instances, left=(str(error),) if made.gpus else ()))
            raise
        self._tell(Divided(made.instances, used, tuple(left)))

    async def _used(self, gpu: str) -> set[Instance]:
        """The instances of a GPU that somebody has without a grant."""
        needed = needed_by(self._record)
        there = {at(gpu, each): each for each in await self._maker.nvml.mig_instances(gpu)}
        free = {instance: found for instance, found in there.items() if instance not in needed}
        using = await self._users(free.values())
        return {instance for instance, found in free.items() if found.uuid in using}

    async def _undivided(self, gpu: str) -> None:
        """See that a GPU's MIG mode is off."""
        if not self._is_capable(gpu):
            return
        facts = await self._maker.facts(gpu)
        if not facts.mig_enabled:
            return
        if not self._may_cut(gpu):
            raise NotYet(f"GPU {facts.index} is cut by MIG and has nothing to share")
        left = await self._tidy(gpu)
        if there := await self._maker.nvml.mig_instances(gpu):
            raise NotYet("; ".join(left) or f"GPU {facts.index} has {_words(there)}, which Lamina may not destroy")
        await self._maker.set_mode(facts, False)
        log.info("The MIG mode of GPU %d is off", facts.index)

    async def _device(self, instance: Instance, before: Set[str]) -> str:
        """The UUID of the MIG device, which is made if it is not there."""
        facts, nvml = await self._maker.facts(instance.gpu), self._maker.nvml
        if not facts.mig_enabled:
            await self._divide(facts)
        there = await nvml.mig_instances(instance.gpu)
        found = _at(there, instance)
        if found is not None and found.uuid:
            if found.uuid not in before and (using := await self._users([found])):
                raise NotYet(
                    f"{_words([found])} of GPU {facts.index} is in use by {', '.join(using[found.uuid])}; it can be "
                    "given out when that has ended"
                )
            return found.uuid
        self._check_may_cut(facts)
        if found is not None and instance not in self._maker.made.instances:
            raise NotYet(f"{_words([found])} of GPU {facts.index} has no compute instance, and Lamina did not make it")
        if found is not None:
            await self._maker.destroy(instance.gpu, found)
        await self._tidy(instance.gpu)
        place = Placed(instance.profile, instance.start)
        beside = [Placed(each.profile, each.start) for each in await nvml.mig_instances(instance.gpu)]
        (await nvml.mig_card(instance.gpu)).check([*beside, place])
        self._maker.made.note_label(instance.gpu, labelled=False)
        made = await self._maker.create(instance.gpu, place)
        log.info("Made %s of GPU %d", _words([made]), facts.index)
        return made.uuid

    async def _divide(self, facts: GpuFacts) -> None:
        """Turn a GPU's MIG mode on."""
        self._check_may_cut(facts)
        if using := await self._processes(facts.uuid):
            raise NotYet(f"GPU {facts.index} is in use by {using}; its MIG mode can change when it is idle")
        await self._maker.set_mode(facts, True)
        log.info("The MIG mode of GPU %d is on", facts.index)

    def _is_capable(self, gpu: str) -> bool:
        """Whether somebody may have cut the GPU since it was looked at."""
        state = self._gpus().get(gpu)
        return state is not None and (state.facts.mig_capable or state.facts.mig_enabled)

    def _may_cut(self, gpu: str) -> bool:
        return gpu in (self._cuttable() or ())

    def _check_may_cut(self, facts: GpuFacts) -> None:
        if not self._may_cut(facts.uuid):
            raise NotYet(
                f"GPU {facts.index} may not be cut for a grant: the configuration of its node, or its label "
                "nvidia.com/mig.config, says otherwise"
            )

    async def _tidy(self, gpu: str) -> list[str]:
        """Destroy what we made of a GPU and nobody needs; what stays all the same, in sentences."""
        made, cuttable = self._maker.made, self._cuttable()
        if cuttable is None or (gpu in made.labelled and gpu not in cuttable and not self._dismantle):
            return []
        index, left = self._gpus()[gpu].facts.index, []
        needed = {each for each in needed_by(self._record) if each.gpu == gpu}
        unneeded = {each for each in made.instances if each.gpu == gpu} - needed
        there = await self._maker.nvml.mig_instances(gpu) if unneeded else ()
        for instance in sorted(unneeded):
            if reason := await self._take_away(instance, there):
                left.append(f"GPU {index} keeps {instance.profile} at {instance.start}: {reason}")
        if gpu in made.modes and gpu not in cuttable and not needed and not left:
            left += await self._close(gpu)
        return left

    async def _close(self, gpu: str) -> list[str]:
        """Turn a MIG mode off that we turned on; why it stays, if it does."""
        facts, nvml = await self._maker.facts(gpu), self._maker.nvml
        if there := await nvml.mig_instances(gpu):
            return [f"GPU {facts.index} keeps its MIG mode: Lamina did not make {_words(there)}"]
        if using := await self._processes(gpu):
            return [f"GPU {facts.index} keeps its MIG mode: it is in use by {using}"]
        try:
            await self._maker.set_mode(facts, False)
        except NotYet as error:
            return [str(error)]
        return []

    async def _take_away(self, instance: Instance, there: Iterable[MigInstance]) -> str:
        """Destroy an instance of ours; why it stays, if it does."""
        found = _at(there, instance)
        if found is None:
            self._maker.made.forget(instance)
            return ""
        if using := await self._users([found]):
            return f"it is in use by {', '.join(using[found.uuid])}"
        try:
            await self._maker.destroy(instance.gpu, found)
        except Outside as error:
            return str(error)
        log.info("Destroyed %s of %s", _words([found]), instance.gpu)
        return ""

    async def _users(self, instances: Iterable[MigInstance]) -> dict[str, list[str]]:
        """Who has these instances without a grant, by the UUIDs of their devices."""
        uuids = [each.uuid for each in instances if each.uuid]
        if not uuids:
            return {}
        held = await holders(self._record, self._pod_resources, self._resources())
        running = await processes(self._maker.nvml, uuids)
        return running | {uuid: held[uuid] for uuid in uuids if uuid in held}

    async def _processes(self, gpu: str) -> str:
        return ", ".join((await processes(self._maker.nvml, [gpu])).get(gpu, ()))


def needed_by(record: Record) -> frozenset[Instance]:
    """The instances that containers have."""
    return frozenset(each for held in record.allocations if held.bound is not None for each in held.bound.instances)


def _at(there: Iterable[MigInstance], instance: Instance) -> MigInstance | None:
    return next((each for each in there if at(instance.gpu, each) == instance), None)


def _words(instances: Iterable[MigInstance]) -> str:
    return ", ".join(f"{each.profile} at {each.start}" for each in instances)


async def sweeping_instances(on_demand: OnDemand, clock: Clock, *, poll_s: float) -> None:
    """Sweep for ever."""
    failed = ""
    while True:
        try:
            await on_demand.sweep()
            failed = ""
        except Outside as error:
            if str(error) != failed:
                log.warning("MIG instances cannot be looked after: %s", error)
            failed = str(error)
        await clock.sleep(poll_s)
