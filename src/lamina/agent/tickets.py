"""Device ids for kubelet. A ticket says that its holder may ask for what its grant says; it names no GPU.

Each vocabulary has a resource for which kubelet hands out tickets, and each has tickets of its own: one for every slot
of every GPU, or, where the resource is an amount of memory, one for every unit of it. An unhealthy GPU takes as many
away as it has. Which ones makes no difference to what the tickets mean, but kubelet, when it restarts, fails running
pods whose devices are no longer healthy: so tickets that nobody holds go first, from the highest down, and one that was
taken away stays away.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from lamina.dialects import vocabularies
from lamina.dialects.cce import UNIT_MIB
from lamina.dialects.config import Config
from lamina.model.gpus import Gpu, Mode
from lamina.model.grants import ContainerGrant

_MOST_INSTANCES = 7
"""Of MIG on one GPU."""
_PREFIXES = {"hami": "ticket", "volcano": "vgpu", "cce": "memory"}


class Ticket(NamedTuple):
    id: str
    healthy: bool


class Kind(NamedTuple):
    """The tickets of one resource. `unit_mib` is 0 where a ticket stands for one GPU of a container."""

    resource: str
    prefix: str
    unit_mib: int = 0

    @property
    def endpoint(self) -> str:
        """The name of the plugin's socket in kubelet's folder."""
        return f"lamina-{self.prefix}.sock"

    def on(self, gpu: Gpu) -> int:
        """How many there are for a GPU: one for each container that may be on it."""
        if self.unit_mib:
            return gpu.capacity_mib // self.unit_mib
        return max(gpu.slots, _MOST_INSTANCES) if Mode.MIG in gpu.modes else gpu.slots

    def asked_by(self, container: ContainerGrant) -> int:
        """How many kubelet gives a container with this grant."""
        if not self.unit_mib:
            return len(container.shares)
        return sum(share.memory_mib for share in container.shares) // self.unit_mib

    def gives(self, container: ContainerGrant, count: int) -> bool:
        """Whether kubelet may have given so many to a container with this grant. A MIG instance may have more memory
        than was asked."""
        granted = self.asked_by(container)
        more = bool(self.unit_mib) and any(share.mig is not None for share in container.shares)
        return 0 < count <= granted if more else count == granted


def kinds(config: Config) -> tuple[Kind, ...]:
    """The kinds of tickets of all vocabularies."""
    return tuple(
        Kind(vocabulary.ticket, _PREFIXES[vocabulary.dialect], 0 if vocabulary.count else UNIT_MIB)
        for vocabulary in vocabularies(config)
    )


def tickets(
    kind: Kind, gpus: Iterable[Gpu], *, held: Set[str] = frozenset(), before: Iterable[Ticket] = ()
) -> tuple[Ticket, ...]:
    """The tickets of a node with these GPUs. `held` are ids in containers' hands, `before` is what was told last."""
    known = tuple(gpus)
    ids = [f"{kind.prefix}-{number}" for number in range(sum(kind.on(gpu) for gpu in known))]
    missing = sum(kind.on(gpu) for gpu in known if not gpu.healthy)
    away = {ticket.id for ticket in before if not ticket.healthy}
    taken: set[str] = set()
    if missing:
        by_preference = sorted(range(len(ids)), key=lambda n: (ids[n] in held, ids[n] not in away, -n))
        taken = {ids[n] for n in by_preference[:missing]}
    return tuple(Ticket(id, id not in taken) for id in ids)
