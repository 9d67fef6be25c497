"""Which GPUs containers use at the moment, and how, from the record: a GPU in use stays in its mode."""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import structs

from lamina.agent.plain import is_plain, unit_of
from lamina.agent.record import Allocation
from lamina.agent.tickets import Ticket
from lamina.model.gpus import Gpu, Mode


class Use(NamedTuple):
    """`resource` is the one by which kubelet gave the GPU out, empty where a grant did."""

    mode: Mode
    resource: str = ""


class Uses(NamedTuple):
    """`ids` are the devices in containers' hands by resource, `gpus` what each GPU in use is used for, by UUID.

    `unknown`: a container has tickets, and which GPUs it will get is not known yet. `waiting` are devices of containers
    that were not prepared yet, by resource.
    """

    ids: Mapping[str, Set[str]] = {}
    gpus: Mapping[str, Use] = {}
    unknown: bool = False
    waiting: Mapping[str, Set[str]] = {}

    @property
    def tickets(self) -> Set[str]:
        """All ids, whatever they are of."""
        return frozenset().union(*self.ids.values())

    def of(self, gpu: str, resource: str) -> Use | None:
        """What the GPU is used for, None while it is idle. Where the node is to give it out as `resource`, without
        grants, doubt means that a grant has it."""
        found = self.gpus.get(gpu)
        return Use(Mode.QUOTA) if found is None and resource and self.unknown else found

    def beside(self, resource: str, units: Set[str]) -> tuple[Ticket, ...]:
        """Devices of the resource in containers' hands that are not of these units.

        Kubelet gives a healthy one to another pod when its holder has gone. Where no container has begun with it none
        may, so it is not healthy.
        """
        waiting = self.waiting.get(resource, ())
        ids = sorted(id for id in self.ids.get(resource, ()) if unit_of(id) not in units)
        return tuple(Ticket(id, id not in waiting) for id in ids)

    def plain(self, resource: str, units: Set[str] = frozenset()) -> tuple[Ticket, ...]:
        """The same, of devices that are no tickets."""
        return tuple(each for each in self.beside(resource, units) if is_plain(each.id))


def marked(gpu: Gpu, used: Uses, resource: str) -> Gpu:
    """The GPU with what it is used for. `resource` is as what its node gives it out without grants, or empty."""
    use = used.of(gpu.uuid, resource)
    if use is None:
        return structs.replace(gpu, plain=resource, mode=Mode.MIG if gpu.instances else None)
    return structs.replace(gpu, plain=resource or use.resource, mode=use.mode)


def free_for(gpu: Gpu, used: Uses, resource: str, mode: Mode) -> bool:
    """Whether the GPU may be given out in `mode` without grants: it is idle, or in use in just that way."""
    use = used.of(gpu.uuid, resource)
    return use is None or (bool(use.resource) and use.mode is mode)


def takes_tickets(gpu: Gpu) -> bool:
    """Whether there are tickets for the GPU: shares of it may be granted, or are in use."""
    return not gpu.plain or gpu.mode is Mode.QUOTA


def uses(allocations: Iterable[Allocation], mode: Mode = Mode.TIMESLICE) -> Uses:
    """What the allocations come to. `mode` is that in which the node shares now, and so that of replicas which kubelet
    gave out for containers that did not start yet."""
    shared = mode if mode is Mode.MPS else Mode.TIMESLICE
    ids: dict[str, set[str]] = {}
    waiting: dict[str, set[str]] = {}
    gpus: dict[str, Use] = {}
    unknown = False
    for each in allocations:
        ids.setdefault(each.resource, set()).update(each.tickets)
        if each.bound is None:
            waiting.setdefault(each.resource, set()).update(each.tickets)
        resource = each.resource if all(map(is_plain, each.tickets)) else ""
        if each.bound is not None and each.bound.gpus and each.bound.mode is not None:
            gpus |= dict.fromkeys(each.bound.gpus, Use(each.bound.mode, resource))
        elif resource:
            state = shared if any("::" in device for device in each.tickets) else Mode.WHOLE
            gpus |= dict.fromkeys(map(unit_of, each.tickets), Use(state, resource))
        else:
            unknown = True
    return Uses(ids, gpus, unknown, waiting)
