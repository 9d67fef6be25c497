"""The node's devices for claims: what claims may get of it now, next to what pods have by the device plugins.

Offers and preparation ask the same, so no claim is sent to a GPU that it then waits for. The record has the GPUs of
containers that have been prepared. A pod that is bound and waits for its start has a grant only, which is read once:
the GPUs of a grant do not change.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from lamina.agent.context import NodeContext
from lamina.agent.inventory.builder import OnDemandInstances
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mig.grant_partitioner import required_instances
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Instance
from lamina.core.mig import Placed
from lamina.core.mig_cards import mig_card
from lamina.core.mig_rules import rule_for
from lamina.dra.offers import DriverVersions, OfferedDevice, OfferedGpu, offered_devices, shared_counters
from lamina.dra.partitions import PartitionOptions
from lamina.errors import NotYet, Outside
from lamina.ports.kube import GRANTS


class Doors:
    """What the pods of one node have. The watch of pods says which there are."""

    def __init__(self, node: NodeContext, offers: NodeOfferStore) -> None:
        self._node = node
        self._offers = offers
        self._unread: dict[str, tuple[str, str]] = {}
        """Pods whose grants have not been read, by UID."""
        self._granted: dict[str, Mapping[str, str]] = {}
        """By UID of the pod, the GPUs that its grant names, each with the pod."""
        self.synced = False
        """Whether all pods of the node have been observed."""

    def observe(self, uid: str, namespace: str, name: str) -> None:
        """A pod that asks for devices of the plugins is on the node, and has not ended."""
        if uid not in self._granted:
            self._unread[uid] = (namespace, name)

    def observe_end(self, uid: str) -> None:
        self._unread.pop(uid, None)
        self._granted.pop(uid, None)

    async def refresh(self) -> None:
        """Read the grants of new pods. Raises Outside."""
        for uid, (namespace, name) in list(self._unread.items()):
            found: Mapping[str, str] = {}
            with self._node.aside.around(GRANTS.plural, f"{namespace}/{name}", passing=Outside):
                if grant := await self._node.cluster.get_grant(namespace, name, uid):
                    shares = (share for container in grant.containers for share in container.shares)
                    found = {share.gpu: f"{namespace}/{name}" for share in shares}
            if self._unread.pop(uid, None):
                self._granted[uid] = found

    @property
    def in_use(self) -> Set[str]:
        """The UUIDs of the GPUs and MIG devices."""
        return {*self._offers.in_use.gpus, *self._holders}

    @property
    def _holders(self) -> Mapping[str, str]:
        return {gpu: pod for granted in self._granted.values() for gpu, pod in granted.items()}

    def require_unused(self, unit: str) -> None:
        """Raises NotYet with the pod that waits for its start with a grant of the GPU."""
        if not self.synced:
            raise NotYet("the agent has not read the pods of the node yet; the claim waits for that")
        if pod := self._holders.get(unit):
            raise NotYet(f"{unit} is in use by pod {pod} through the device plugin; the claim waits until that ends")


REFUSED_S = 60.0


class DraDevices:
    """The devices of one node. What NVML tells of a GPU once and for all is asked when it is first seen."""

    def __init__(self, node: NodeContext, offers: NodeOfferStore, doors: Doors) -> None:
        self._node = node
        self._offers = offers
        self.doors = doors
        self._bus_ids: Mapping[str, str] = {}
        self._versions = DriverVersions()
        self.counts = True
        """Whether Kubernetes keeps devices apart by counters, as MIG devices on demand need it."""
        self._refused: dict[str, float] = {}
        """Until when GPUs have a taint, by UUID."""

    async def refresh(self) -> None:
        """Read grants of new pods, and ask NVML about new GPUs or another driver. Raises Outside."""
        await self.doors.refresh()
        state = self._offers.state
        if (state.driver or "") != self._versions.driver:
            cuda = await self._node.nvml.cuda_version()
            self._versions = DriverVersions(state.driver or "", cuda)
        if not self._bus_ids.keys() >= state.gpus.keys():
            readings = await self._node.nvml.readings()
            self._bus_ids = dict.fromkeys(state.gpus, "") | {uuid: each.bus_id for uuid, each in readings.items()}

    @property
    def known(self) -> bool:
        """Whether all that decides the offer has been asked."""
        state = self._offers.state
        known = None not in (state.cordoned, state.labelled, state.on_demand)
        return bool(state.driver) and self.doors.synced and known

    @property
    def devices(self) -> list[OfferedDevice]:
        """All devices that the configuration lets claims have, in use or not, in their order."""
        used = self._node.record.claimed.keys()
        parents = {device.gpu for device in self._offers.state.mig_devices if device.uuid in used}
        return offered_devices(self._gpus, self._versions, {*used, *parents}, self._node.settings.dra_driver)

    @property
    def _gpus(self) -> list[OfferedGpu]:
        state = self._offers.state
        return [
            OfferedGpu(
                facts=gpu.facts,
                bus_id=self._bus_ids.get(uuid, ""),
                reason=gpu.reason,
                mig=tuple(device for device in state.mig_devices if device.gpu == uuid),
                options=self._options(gpu),
                refused=self._refused.get(uuid, 0.0) > self._node.clock.monotonic(),
            )
            for uuid, gpu in state.gpus.items()
            if state.selected and state.settings.offers(uuid, gpu.facts.index)
        ]

    def _options(self, gpu: ObservedGpu) -> PartitionOptions | None:
        """What claims may make of a GPU: the same as grants, in all profiles where no rule restricts them."""
        state, facts = self._offers.state, gpu.facts
        card = mig_card(facts.pci_device)
        if card is None or not self.counts or facts.uuid not in (state.partitionable or ()):
            return None
        rule = rule_for(self._node.config.mig_rules, facts.name, card)
        known = state.on_demand or OnDemandInstances()
        there = {Instance(gpu=facts.uuid, profile=each.profile, start=each.start) for each in facts.instances}
        others = there - known.made - required_instances(self._node)
        kept = {each: Placed(each.profile, each.start) for each in sorted(others)}
        return PartitionOptions(
            card=card,
            profiles=tuple(each for each in card.profiles if rule is None or each.name in rule.profiles),
            kept=tuple(kept.values()),
            used=frozenset(place for each, place in kept.items() if each in known.used),
        )

    @property
    def free(self) -> list[OfferedDevice]:
        """Those that no container has by another door, that are not cordoned, and that no MPS daemon has."""
        state = self._offers.state
        taken = self.doors.in_use | state.daemons.keys() | (state.cordoned or frozenset())
        return [device for device in self.devices if not {device.uuid, device.gpu} & taken]

    def counters(self, devices: Iterable[OfferedDevice]) -> list[dict[str, Any]]:
        """Those that these devices take."""
        gpus = {device.gpu for device in devices}
        return shared_counters(gpu for gpu in self._gpus if gpu.facts.uuid in gpus)

    def refuse(self, gpus: Iterable[str]) -> None:
        """GPUs just refused MIG instances or an MPS daemon: the scheduler tries others for `REFUSED_S`."""
        self._refused |= dict.fromkeys(gpus, self._node.clock.monotonic() + REFUSED_S)

    def changed(self) -> None:
        """Let the other doors know what claims hold now."""
        self._offers.update()


async def refreshed(offer: DraDevices) -> bool:
    """Ask, and return whether the offer is known. Where NVML or the API server does not answer, it is as it was."""
    try:
        await offer.refresh()
    except Outside:
        return False
    return offer.known
