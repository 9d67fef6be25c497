"""Tickets: device IDs that let their holder use what its grant says. A ticket names no GPU.

Each dialect has a resource for which kubelet hands out tickets: one for every slot of every GPU or, if the resource is
an amount of memory, one for every unit of it. An unhealthy GPU makes as many tickets unhealthy as it has. Which ones
does not matter to Lamina, but kubelet, when it restarts, fails running pods whose devices are unhealthy. So tickets
that no container holds become unhealthy first, from the highest number down, and an unhealthy one stays unhealthy.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from lamina.configuration import Config
from lamina.core.gpus import Gpu, Mode
from lamina.core.grants import ContainerGrant
from lamina.dialects import resource_names

_MAX_INSTANCES = 7
"""MIG instances on one GPU."""


class KubeletDevice(NamedTuple):
    """A device as kubelet sees it: a ticket or a native device."""

    id: str
    healthy: bool


class TicketKind(NamedTuple):
    """The tickets of one resource. A ticket stands for `unit_mib` of memory; if that is 0, for one share."""

    resource: str
    prefix: str
    unit_mib: int = 0

    @property
    def endpoint(self) -> str:
        """The name of the plugin's socket in kubelet's directory."""
        return f"lamina-{self.prefix}.sock"

    def count_on(self, gpu: Gpu) -> int:
        """How many tickets a GPU has: one for each container that may use it at the same time."""
        if self.unit_mib:
            return gpu.capacity_mib // self.unit_mib
        return max(gpu.slots, _MAX_INSTANCES) if Mode.MIG in gpu.modes else gpu.slots

    def count_for(self, container: ContainerGrant) -> int:
        """How many tickets kubelet allocates to a container with this grant."""
        if not self.unit_mib:
            return len(container.shares)
        return sum(share.memory_mib for share in container.shares) // self.unit_mib

    def matches(self, container: ContainerGrant, count: int) -> bool:
        """Whether kubelet can have allocated `count` tickets to a container with this grant.

        A MIG instance may have more memory than was requested, and so may who has a GPU to itself.
        """
        granted = self.count_for(container)
        may_exceed = bool(self.unit_mib) and any(share.mig or share.exclusive for share in container.shares)
        return 0 < count <= granted if may_exceed else count == granted


def ticket_kinds(config: Config) -> tuple[TicketKind, ...]:
    """The kinds of tickets of all dialects."""
    return tuple(TicketKind(names.ticket, names.ticket_prefix, names.ticket_mib) for names in resource_names(config))


def advertised_tickets(
    kind: TicketKind, gpus: Iterable[Gpu], *, held: Set[str] = frozenset(), before: Iterable[KubeletDevice] = ()
) -> tuple[KubeletDevice, ...]:
    """The tickets of a node with these GPUs. `held` are IDs that containers have; `before` are the tickets so far."""
    listed = tuple(gpus)
    ids = [f"{kind.prefix}-{number}" for number in range(sum(kind.count_on(gpu) for gpu in listed))]
    missing = sum(kind.count_on(gpu) for gpu in listed if not gpu.healthy)
    unhealthy_before = {ticket.id for ticket in before if not ticket.healthy}
    unhealthy: set[str] = set()
    if missing:
        by_preference = sorted(range(len(ids)), key=lambda n: (ids[n] in held, ids[n] not in unhealthy_before, -n))
        unhealthy = {ids[n] for n in by_preference[:missing]}
    return tuple(KubeletDevice(id, id not in unhealthy) for id in ids)
