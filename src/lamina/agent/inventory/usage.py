"""What each GPU is used for, from the record: the one rule for what is offered and for what may start.

A GPU in use stays in its mode, and is never in two modes at once: one on which containers have MIG instances, or are
clients of MPS, has no other users, and the other way round. It also has one door at a time: it has granted shares, or
native devices, or is held by claims. What the node advertises says so too, but the scheduler and kubelet may act on
what was advertised a moment ago, so preparation asks again.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from enum import Enum, auto
from typing import NamedTuple

from msgspec import structs

from lamina.agent.inventory.native_devices import all_native, is_native, unit_uuid
from lamina.agent.inventory.tickets import KubeletDevice
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.claims import HeldClaim
from lamina.core.gpus import Gpu, Mode
from lamina.errors import NotYet


class Door(Enum):
    """By what a container has a GPU."""

    GRANT = auto()
    NATIVE = auto()
    CLAIM = auto()


class GpuUse(NamedTuple):
    """`resource` is the resource of the native device by which a container has the GPU; empty for a grant and a claim.

    `claimed`: ResourceClaims have it.
    """

    mode: Mode
    resource: str = ""
    claimed: bool = False

    @property
    def door(self) -> Door:
        if self.claimed:
            return Door.CLAIM
        return Door.NATIVE if self.resource else Door.GRANT


CLAIMED = GpuUse(Mode.TIMESLICE, claimed=True)
"""A GPU that claims have takes no grants, as one whose time native devices share."""


def may_join(wanted: GpuUse, use: GpuUse) -> bool:
    """Whether a GPU in use may get another container. By quota, whole and by turns are the same mode to it.

    Of several claims, the room on the GPU decides.
    """
    together = {wanted.mode, use.mode}
    same_mode = len(together) == 1 or together.isdisjoint({Mode.MIG, Mode.MPS})
    return wanted.door is use.door and (same_mode or wanted.claimed)


class DevicesInUse(NamedTuple):
    """`ids` are the devices that containers have, by resource; `gpus` is what each GPU in use is used for, by UUID.

    `unknown`: some container has tickets, and its GPUs are not known yet. `waiting` are the devices of containers that
    have not been prepared yet, by resource. `claims` are the ResourceClaims that hold GPUs and MIG devices.
    """

    ids: Mapping[str, Set[str]] = {}
    gpus: Mapping[str, GpuUse] = {}
    unknown: bool = False
    waiting: Mapping[str, Set[str]] = {}
    claims: tuple[HeldClaim, ...] = ()

    @property
    def claimed(self) -> Set[str]:
        """The UUIDs of the GPUs and MIG devices that claims have."""
        return {share.gpu for claim in self.claims for request in claim.requests for share in request.shares}

    @property
    def all_ids(self) -> Set[str]:
        return frozenset().union(*self.ids.values())

    def of(self, gpu: str, resource: str) -> GpuUse | None:
        """What the GPU is used for; None while it is idle.

        If the node is about to advertise the GPU natively as `resource`, an unknown user counts as a grant.
        """
        use = CLAIMED if gpu in self.claimed else self.gpus.get(gpu)
        return GpuUse(Mode.QUOTA) if use is None and resource and self.unknown else use

    def held_outside(self, resource: str, units: Set[str]) -> tuple[KubeletDevice, ...]:
        """The devices of the resource that containers have and that are not of these units.

        Kubelet may assign a healthy one to another pod once its holder is gone. That is fine only while no container
        has started with it, so the others are unhealthy.
        """
        waiting = self.waiting.get(resource, ())
        ids = sorted(id for id in self.ids.get(resource, ()) if unit_uuid(id) not in units)
        return tuple(KubeletDevice(id, id not in waiting) for id in ids)

    def native_held_outside(self, resource: str, units: Set[str] = frozenset()) -> tuple[KubeletDevice, ...]:
        """The native devices among `held_outside`."""
        return tuple(device for device in self.held_outside(resource, units) if is_native(device.id))


def with_usage(gpu: Gpu, in_use: DevicesInUse, resource: str) -> Gpu:
    """The GPU with what it is used for. `resource` is the one by which the node advertises it natively, or empty."""
    use = in_use.of(gpu.uuid, resource)
    if use is None:
        return structs.replace(gpu, native_resource=resource, mode=Mode.MIG if gpu.instances else None)
    return structs.replace(gpu, native_resource=resource or use.resource, mode=use.mode)


def is_free_for(gpu: Gpu, in_use: DevicesInUse, resource: str, mode: Mode) -> bool:
    """Whether the GPU may be advertised natively in `mode`: it is idle, or natively in use in that mode."""
    use = in_use.of(gpu.uuid, resource)
    return use is None or (use.mode is mode and may_join(GpuUse(mode, resource), use))


def accepts_grants(gpu: Gpu, in_use: DevicesInUse) -> bool:
    """Whether the GPU has tickets: shares of it may be granted, or are in use.

    Its tickets stay while claims have the GPU. kube-scheduler makes claims for the pods of a node without tickets.
    """
    if not gpu.native_resource:
        return True
    use = in_use.of(gpu.uuid, gpu.native_resource)
    return use is not None and use.door is Door.GRANT and use.mode in (Mode.QUOTA, Mode.MPS)


def devices_in_use(
    allocations: Iterable[Holding], mode: Mode = Mode.TIMESLICE, *, claims: tuple[HeldClaim, ...] = ()
) -> DevicesInUse:
    """What the allocations use, next to what `claims` hold. `mode` is as in `uses_of`."""
    ids: dict[str, set[str]] = {}
    waiting: dict[str, set[str]] = {}
    gpus: dict[str, GpuUse] = {}
    unknown = False
    for allocation in allocations:
        ids.setdefault(allocation.resource, set()).update(allocation.tickets)
        if allocation.bound is None:
            waiting.setdefault(allocation.resource, set()).update(allocation.tickets)
        uses = uses_of(allocation, mode)
        gpus |= uses
        unknown = unknown or not uses
    return DevicesInUse(ids, gpus, unknown, waiting, claims)


def uses_of(holding: Holding, mode: Mode = Mode.TIMESLICE) -> dict[str, GpuUse]:
    """What a holding uses by UUID; nothing for tickets whose container is not known yet.

    `mode` is the node's current mode of sharing, which applies to replicas whose containers have not started yet.
    """
    bound = holding.bound
    resource = holding.resource if all_native(holding.tickets) else ""
    if bound is not None:
        use = GpuUse(bound.mode, "" if bound.of_claim else resource, claimed=bound.of_claim)
        return dict.fromkeys(bound.gpus, use)
    if not resource:
        return {}
    shared = mode if mode is Mode.MPS else Mode.TIMESLICE
    native_mode = shared if any("::" in device for device in holding.tickets) else Mode.WHOLE
    return dict.fromkeys(map(unit_uuid, holding.tickets), GpuUse(native_mode, resource))


def check_uses(wanted: Iterable[tuple[str, GpuUse]], others: Collection[Holding]) -> None:
    """Raises NotYet if a GPU is in use in a way that excludes what is wanted of it. `others` have it already."""
    for other in others:
        uses = uses_of(other)
        for gpu, want in wanted:
            if gpu in uses and not may_join(want, uses[gpu]):
                raise NotYet(_why_not(gpu, want, uses[gpu], other.bound))


def check_instances(starting: Iterable[Bound], others: Collection[Holding]) -> None:
    """Raises NotYet if a container would have a MIG instance of another pod."""
    for bound in starting:
        for other in (each.bound for each in others if each.bound is not None):
            for instance in set(bound.instances) & set(other.instances) if bound.pod_uid != other.pod_uid else ():
                raise NotYet(
                    f"{instance.profile} at {instance.start} of {instance.gpu} is in use by pod "
                    f"{other.namespace}/{other.pod}"
                )


def _why_not(gpu: str, wanted: GpuUse, use: GpuUse, holder: Bound | None) -> str:
    pod = f"{holder.namespace}/{holder.pod}" if holder else ""
    if use.claimed:
        return f"{gpu} is in use by the ResourceClaim {pod}; the container waits until that ends"
    if wanted.claimed:
        by = f" by pod {pod}" if pod else ""
        return f"{gpu} is in use{by} through the device plugin; the claim waits until that ends"
    how = "" if wanted.door is use.door else ", one with a grant and the other without"
    return (
        f"{gpu} is in mode {use.mode} as long as pod {pod} uses it, and the container needs it in mode "
        f"{wanted.mode}{how}"
    )
