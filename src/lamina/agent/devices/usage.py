"""What each GPU is used for, from the record: the one rule for what is offered and for what may start.

A GPU in use stays in its mode, and is never in two modes at once: one on which containers have MIG instances, or are
clients of MPS, has no other users, and the other way round. The same applies to GPUs with granted shares and GPUs with
native devices. What the node advertises says so too, but the scheduler and kubelet may act on what was advertised a
moment ago, so preparation asks again.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import structs

from lamina.agent.devices.native_devices import all_native, is_native, unit_uuid
from lamina.agent.devices.tickets import KubeletDevice
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.claims import HeldClaim
from lamina.core.gpus import Gpu, Mode
from lamina.errors import NotYet


class GpuUse(NamedTuple):
    """`resource` is the resource of the native device by which a container has the GPU; empty for a grant."""

    mode: Mode
    resource: str = ""


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
        use = self.gpus.get(gpu)
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
    if gpu.uuid in in_use.claimed:  # such a GPU takes no grants, as one whose time native devices share
        return structs.replace(gpu, native_resource=resource, mode=Mode.TIMESLICE)
    use = in_use.of(gpu.uuid, resource)
    if use is None:
        return structs.replace(gpu, native_resource=resource, mode=Mode.MIG if gpu.instances else None)
    return structs.replace(gpu, native_resource=resource or use.resource, mode=use.mode)


def is_free_for(gpu: Gpu, in_use: DevicesInUse, resource: str, mode: Mode) -> bool:
    """Whether the GPU may be advertised natively in `mode`: it is idle, or natively in use in that mode."""
    use = in_use.of(gpu.uuid, resource)
    if gpu.uuid in in_use.claimed:
        return False
    return use is None or (bool(use.resource) and use.mode is mode)


def accepts_grants(gpu: Gpu, in_use: DevicesInUse) -> bool:
    """Whether the GPU has tickets: shares of it may be granted, or are in use.

    Its tickets stay while claims have the GPU. kube-scheduler makes claims for the pods of a node without tickets.
    """
    if not gpu.native_resource:
        return True
    use = None if gpu.uuid in in_use.claimed else in_use.of(gpu.uuid, gpu.native_resource)
    return use is not None and not use.resource and use.mode in (Mode.QUOTA, Mode.MPS)


def devices_in_use(
    allocations: Iterable[Holding], mode: Mode = Mode.TIMESLICE, *, claims: tuple[HeldClaim, ...] = ()
) -> DevicesInUse:
    """What the allocations use, next to what `claims` hold. `mode` is the node's current mode of sharing, which applies
    to replicas whose containers have not started yet."""
    shared = mode if mode is Mode.MPS else Mode.TIMESLICE
    ids: dict[str, set[str]] = {}
    waiting: dict[str, set[str]] = {}
    gpus: dict[str, GpuUse] = {}
    unknown = False
    for allocation in allocations:
        ids.setdefault(allocation.resource, set()).update(allocation.tickets)
        bound = allocation.bound
        if bound is None:
            waiting.setdefault(allocation.resource, set()).update(allocation.tickets)
        resource = allocation.resource if all_native(allocation.tickets) else ""
        if bound is not None and bound.gpus and bound.mode is not None:
            gpus |= dict.fromkeys(bound.gpus, GpuUse(bound.mode, resource))
        elif resource:
            native_mode = shared if any("::" in device for device in allocation.tickets) else Mode.WHOLE
            gpus |= dict.fromkeys(map(unit_uuid, allocation.tickets), GpuUse(native_mode, resource))
        else:
            unknown = True
    return DevicesInUse(ids, gpus, unknown, waiting, claims)


def check_modes(starting: Collection[Bound], others: Collection[Holding], *, native: bool = False) -> None:
    """Raises NotYet if a starting container would use a GPU in another mode, or an instance of another pod.

    `others` are the names of all other containers; those prepared and not yet released count. `native` is whether the
    starting containers have native devices.
    """
    for other in others:
        if other.bound is not None:
            other_is_native = all_native(other.tickets)
            for container in starting:
                _check_pair(container, other.bound, mixed=native != other_is_native)


def _differ(mode: Mode | None, other: Mode) -> bool:
    """Whether a GPU cannot be in both modes at a time. By quota, whole and by turns are the same to it."""
    return mode is not other and not {mode, other}.isdisjoint({Mode.MIG, Mode.MPS})


def _check_pair(container: Bound, other: Bound, *, mixed: bool) -> None:
    pod = f"{other.namespace}/{other.pod}"
    for gpu in set(container.gpus) & set(other.gpus):
        if other.mode is not None and (mixed or _differ(container.mode, other.mode)):
            how = ", one with a grant and the other without" if mixed else ""
            raise NotYet(
                f"{gpu} is in mode {other.mode} as long as pod {pod} uses it, and the container needs it in mode "
                f"{container.mode}{how}"
            )
    for instance in set(container.instances) & set(other.instances) if container.pod_uid != other.pod_uid else ():
        raise NotYet(f"{instance.profile} at {instance.start} of {instance.gpu} is in use by pod {pod}")
