"""Device ids for kubelet. A ticket says that its holder may ask for what its grant says; it names no GPU.

There is a ticket for every slot of every GPU. An unhealthy GPU takes as many away as it has slots. Which ones makes no
difference to what the tickets mean, but kubelet, when it restarts, fails running pods whose devices are no longer
healthy: so tickets that nobody holds go first, from the highest down, and one that was taken away stays away.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from lamina.model.gpus import Gpu


class Ticket(NamedTuple):
    id: str
    healthy: bool


def tickets(gpus: Iterable[Gpu], *, held: Set[str] = frozenset(), before: Iterable[Ticket] = ()) -> tuple[Ticket, ...]:
    """The tickets of a node with these GPUs. `held` are ids in containers' hands, `before` is what was told last."""
    known = tuple(gpus)
    ids = [f"ticket-{number}" for number in range(sum(gpu.slots for gpu in known))]
    missing = sum(gpu.slots for gpu in known if not gpu.healthy)
    away = {ticket.id for ticket in before if not ticket.healthy}
    by_preference = sorted(range(len(ids)), key=lambda n: (ids[n] in held, ids[n] not in away, -n))
    taken = {ids[n] for n in by_preference[:missing]}
    return tuple(Ticket(id, id not in taken) for id in ids)
