"""State of the node -> its Inventory and the devices that kubelet sees. Pure.

A node with a configuration of NVIDIA's plugin advertises its GPUs as native devices, and no shares are placed on them.
A GPU in use stays in its mode: it is advertised in the other way once its containers have ended.

MIG devices are native devices too. By the MIG strategy their resources are those of their profiles or nvidia.com/gpu.
MIG devices of GPUs that grants may partition are not advertised; only grants hand them out.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import Struct, structs

from lamina.agent.inventory.builder import OnDemandInstances, build_inventory, empty_inventory
from lamina.agent.inventory.native_devices import (
    NativeKind,
    Unit,
    advertised_devices,
    as_observed_gpus,
    counts_by_profile,
    native_kind,
    units_by_resource,
)
from lamina.agent.inventory.tickets import KubeletDevice, TicketKind, advertised_tickets
from lamina.agent.inventory.usage import DevicesInUse, GpuUse, accepts_grants, is_free_for, with_usage
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration import NodeSettings
from lamina.core.claims import MAX_CLAIMS, HeldClaim
from lamina.core.evictions import DisplacedBorrower, IdlePod
from lamina.core.gpus import Gpu, Inventory, MigDeviceCount, Mode, NativeResource, RefusedConfiguration
from lamina.core.grants import MigInstance, Share
from lamina.core.mig_devices import NONE, SINGLE, MigDevice, single_strategy_problem
from lamina.core.mps import MpsDaemon
from lamina.core.sharing import GPU, ReplicaSharing, TimeSlice
from lamina.core.sizes import AppliedSize
from lamina.core.survivors import Survivor

Devices = tuple[KubeletDevice, ...]


class OfferState(Struct, frozen=True, kw_only=True):
    """Everything that decides what a node offers. One part of the agent sets each field that changes; the others come
    from the configuration.

    While `cordoned`, `labelled`, `on_demand` or `survivors` is None it is not known yet, and no inventory is published.
    """

    node: str
    settings: NodeSettings
    ticket_kinds: tuple[TicketKind, ...] = ()
    native_kinds: tuple[NativeKind, ...] = ()
    mode: Mode = Mode.WHOLE
    """The mode of native devices."""
    sharing: ReplicaSharing = ReplicaSharing()
    """How native devices, and so MIG devices, are shared."""
    mig_strategy: str = NONE
    selected: bool
    """Whether the node's labels let it offer its GPUs. Set by `compat.node_watch`."""
    cordoned: Set[str] | None = frozenset()
    """GPUs that no new container may get. Set by `compat.node_watch`."""
    labelled: Set[str] | None = frozenset()
    """GPUs that the node's label partitions, so that no grant may. Set by `mig.label_partitioner`."""
    to_partition: Set[str] = frozenset()
    """Those of them that have MIG mode by the label, and so no MPS daemon. Set by `mig.label_partitioner`."""
    on_demand: OnDemandInstances | None = OnDemandInstances()
    """The MIG instances on GPUs that grants may partition. Set by `mig.grant_partitioner`."""
    driver: str | None = None
    """The driver's version; None until NVML has been asked, empty if it never answered. Set by `inventory.monitor`."""
    observed: tuple[ObservedGpu, ...] = ()
    """The GPUs that NVML lists or has listed. Set by `inventory.monitor`."""
    mig_devices: tuple[MigDevice, ...] = ()
    """Those that may be advertised; instances made for grants are not among them. Set by `mig.label_partitioner`."""
    driver_limited: tuple[str, ...] = ()
    """Containers whose memory the driver limits too. Set by `limits.driver_limits`."""
    time_slices: Mapping[str, tuple[TimeSlice, str]] = {}
    """The length of time slices by GPU, and why it could not be set. Set by `nvidia.time_slices`."""
    daemons: Mapping[str, MpsDaemon] = {}
    """MPS daemons that run or are wanted, by GPU. Set by `mps.daemons`."""
    survivors: tuple[Survivor, ...] | None = ()
    """Deleted pods whose processes still run. Set by `cleanup.survivors`."""
    resized: tuple[AppliedSize, ...] = ()
    """The sizes of resized containers. Set by `limits.container_resizer`."""
    refused: tuple[RefusedConfiguration, ...] = ()
    """Configurations that the agent refuses. Set by `parts`."""
    displaced: tuple[DisplacedBorrower, ...] = ()
    """Pods that keep borrowed memory on the host because neighbors need the GPU's. Set by `limits.arbitration`."""
    idle: tuple[IdlePod, ...] = ()
    """Pods that have used no GPU for so long that their shares may be reclaimed. Set by `metrics.accountant`."""

    @property
    def gpus(self) -> Mapping[str, ObservedGpu]:
        """The node's GPUs by UUID, advertised or not."""
        return {gpu.facts.uuid: gpu for gpu in self.observed}

    @property
    def units(self) -> Mapping[str, ObservedGpu]:
        """The GPUs and MIG devices that containers may have, by UUID."""
        gpus = self.gpus
        return {**gpus, **as_observed_gpus(gpus, self.mig_devices)}

    @property
    def units_without_mps(self) -> Mapping[str, ObservedGpu]:
        """The same for containers that are not MPS clients: a GPU with a daemon is unusable for them."""
        return {
            uuid: unit._replace(reason=f"it is in mode mps, and its daemon is {self.daemons[uuid].state.value}")
            if uuid in self.daemons and self.daemons[uuid].made
            else unit
            for uuid, unit in self.units.items()
        }

    @property
    def unpartitioned(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs without MIG mode, whose memory the driver can limit."""
        return tuple(gpu.facts.uuid for gpu in self.observed if not gpu.facts.mig_enabled)

    @property
    def partitionable(self) -> Set[str] | None:
        """The GPUs that grants may partition; None while that is not known."""
        if Mode.MIG not in self.grant_settings.modes:
            return frozenset()
        if self.labelled is None or self.driver is None:
            return None
        return frozenset(gpu.uuid for gpu in self._inventory().gpus if Mode.MIG in gpu.modes)

    @property
    def mig_problem(self) -> str:
        """Why the MIG strategy advertises nothing; empty if it does."""
        if self.mig_strategy != SINGLE:
            return ""
        return single_strategy_problem([gpu.facts for gpu in self._native_gpus.values()], self.mig_devices)

    @property
    def native_resource(self) -> str:
        """The resource by which GPUs are advertised natively; empty if they are not."""
        return next((kind.resource for kind in self.native_kinds), "")

    @property
    def grant_settings(self) -> NodeSettings:
        return structs.replace(self.settings, modes=()) if self.native_kinds else self.settings

    def _inventory(self) -> Inventory:
        """The inventory without what the GPUs are used for."""
        driver = self.driver or ""
        if not self.selected:
            return empty_inventory(self.node, driver)
        return build_inventory(
            self.node,
            driver,
            self.observed,
            self.grant_settings,
            self.cordoned or frozenset(),
            self.labelled or frozenset(),
            self.on_demand or OnDemandInstances(),
        )

    @property
    def _native_gpus(self) -> Mapping[str, ObservedGpu]:
        """The GPUs that the configuration lets the node offer, except those that grants may partition."""
        by_grant = self.partitionable or ()
        return {
            uuid: gpu
            for uuid, gpu in self.gpus.items()
            if uuid not in by_grant and self.grant_settings.offers(uuid, gpu.facts.index)
        }


class NodeOffer(NamedTuple):
    """`inventory` is None while something that decides it is not known. `mig` has the devices of resources that are
    neither of `tickets` nor of `native`; a resource that was once there stays, without devices."""

    inventory: Inventory | None
    tickets: Mapping[TicketKind, Devices]
    native: Mapping[NativeKind, Devices]
    mig: Mapping[NativeKind, Devices]


def no_offer(state: OfferState) -> NodeOffer:
    """The state before NVML was asked."""
    return NodeOffer(None, dict.fromkeys(state.ticket_kinds, ()), dict.fromkeys(state.native_kinds, ()), {})


def advertise(state: OfferState, in_use: DevicesInUse, before: NodeOffer) -> NodeOffer:
    """What the node offers now. `in_use` are the devices of its containers, `before` is what it offered last."""
    if state.driver is None:
        return before
    in_use = _with_daemons(state, in_use)
    bare = state._inventory()
    gpus = tuple(_with_time_slice(state, with_usage(gpu, in_use, state.native_resource)) for gpu in bare.gpus)
    mig_units = _mig_units(state, in_use.claimed)
    whole = [
        Unit(gpu.uuid, gpu.uuid, _accepts_containers(state, gpu))
        for gpu in gpus
        if is_free_for(gpu, in_use, state.native_resource, state.mode)
    ]
    native = {
        kind: _native_devices(kind, () if state.mig_problem else (*whole, *mig_units.pop(kind, ())), in_use)
        for kind in state.native_kinds
    }
    counted = dict(native)
    tickets = {}
    for kind in state.ticket_kinds:
        as_native = native_kind(kind.resource, state.sharing)
        parts = mig_units.pop(as_native, ())
        if parts:
            counted[as_native] = advertised_devices(as_native, parts)
        others = in_use.native_held_outside(kind.resource, {unit.id for unit in parts})
        granting = [gpu for gpu in gpus if accepts_grants(gpu, in_use)]
        shares = advertised_tickets(kind, granting, held=in_use.all_ids, before=before.tickets.get(kind, ()))
        tickets[kind] = (*shares, *advertised_devices(as_native, parts, others))
    mig = {kind: _native_devices(kind, mig_units.get(kind, ()), in_use) for kind in {**before.mig, **mig_units}}
    inventory = before.inventory
    if None not in (state.cordoned, state.labelled) and state.on_demand is not None and state.survivors is not None:
        listed = tuple(
            kind.offered(sum(device.healthy for device in devices)) for kind, devices in {**counted, **mig}.items()
        )
        inventory = structs.replace(
            bare,
            gpus=gpus,
            native_resources=listed if state.selected else (),
            tickets=_ticket_resources(state, listed) if gpus else (),
            driver_limited=state.driver_limited,
            mps=tuple(state.daemons[gpu] for gpu in sorted(state.daemons)),
            mig_leftovers=state.on_demand.left,
            survivors=state.survivors,
            resized=state.resized,
            idle=state.idle,
            displaced=state.displaced,
            refused=state.refused,
            claims=tuple(_on_gpus(claim, state.mig_devices) for claim in in_use.claims[:MAX_CLAIMS]),
            mig_devices=_mig_counts(state),
        )
    return NodeOffer(inventory, tickets, native, mig)


def _ticket_resources(state: OfferState, native: Collection[NativeResource]) -> tuple[str, ...]:
    """The resources of which the node has tickets and no native devices."""
    counted = {each.resource for each in native if each.count}
    return tuple(kind.resource for kind in state.ticket_kinds if kind.resource not in counted)


def _with_daemons(state: OfferState, in_use: DevicesInUse) -> DevicesInUse:
    """A GPU whose replicas an MPS daemon still serves cannot be shared in another way."""
    if state.mode is Mode.MPS:
        return in_use
    serving = [gpu for gpu, daemon in state.daemons.items() if not daemon.for_grants]
    return in_use._replace(gpus={**dict.fromkeys(serving, GpuUse(Mode.MPS, GPU)), **in_use.gpus})


def _accepts_containers(state: OfferState, gpu: Gpu) -> bool:
    """Whether containers may start on the GPU in the node's mode; with MPS only while its daemon is ready."""
    daemon = state.daemons.get(gpu.uuid)
    return gpu.healthy and (state.mode is not Mode.MPS or (daemon is not None and daemon.ready))


def _on_gpus(claim: HeldClaim, devices: Iterable[MigDevice]) -> HeldClaim:
    """The claim with its MIG devices as instances on their GPUs."""
    by_uuid = {device.uuid: device for device in devices}
    requests = tuple(
        structs.replace(request, shares=tuple(_on_gpu(share, by_uuid.get(share.gpu)) for share in request.shares))
        for request in claim.requests
    )
    return structs.replace(claim, requests=requests)


def _on_gpu(share: Share, device: MigDevice | None) -> Share:
    if device is None:
        return share
    instance = MigInstance(profile=device.profile.name, start=device.instance.start)
    return structs.replace(share, gpu=device.gpu, mig=instance)


def _with_time_slice(state: OfferState, gpu: Gpu) -> Gpu:
    length, failure = state.time_slices.get(gpu.uuid, (None, ""))
    return structs.replace(gpu, time_slice=length, time_slice_failure=failure)


def _mig_units(state: OfferState, claimed: Set[str]) -> dict[NativeKind, tuple[Unit, ...]]:
    """The MIG devices by the kind that advertises them. MPS does not share MIG devices.

    Those that are claimed are left out.
    """
    if not state.selected or state.mode is Mode.MPS:
        return {}
    by_resource = units_by_resource(state.mig_strategy, state._native_gpus, state.mig_devices)
    return {
        native_kind(resource, state.sharing): tuple(unit for unit in units if unit.id not in claimed)
        for resource, units in by_resource.items()
    }


def _mig_counts(state: OfferState) -> tuple[MigDeviceCount, ...]:
    if not state.selected:
        return ()
    mps = state.mode is Mode.MPS
    return counts_by_profile(
        state.mig_devices, strategy=state.mig_strategy, problem=state.mig_problem, sharing=state.sharing, mps=mps
    )


def _native_devices(kind: NativeKind, units: Iterable[Unit], in_use: DevicesInUse) -> Devices:
    """The devices of a kind, and those of its resource that containers hold outside these units."""
    listed = tuple(units)
    return advertised_devices(kind, listed, in_use.held_outside(kind.resource, {unit.id for unit in listed}))
