"""Every shape of a pod starts: init containers, sidecars and containers with GPUs, in every order and number.

Devices are allocated as kubelet does it: what an init container had is used again by what comes after it, taken at
random, and what a sidecar or container takes is theirs. PodResources lists no init containers.
"""

import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from lamina.agent.prepare.container_identity import assign_names, find_assigned, find_listed
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.grants import ContainerGrant, Grant
from lamina.ports.kubelet.allocations import Assignment, Holder
from tests.agent.node import KIND, container, share


class Part(NamedTuple):
    """A container of a shape: `kind` is init, sidecar or main."""

    kind: str
    count: int


Shape = tuple[Part, ...]
BEFORE = [Part(kind, count) for kind in ("init", "sidecar") for count in (1, 2)]
MAIN = [Part("main", count) for count in (0, 1, 2)]


def shapes() -> Iterator[Shape]:
    for before in itertools.chain.from_iterable(itertools.product(BEFORE, repeat=n) for n in range(4)):
        for main in itertools.chain.from_iterable(itertools.product(MAIN, repeat=n) for n in (1, 2)):
            yield before + main


def granted(shape: Shape) -> list[ContainerGrant]:
    """What each container with GPUs has. No two have the same."""
    return [
        container(
            f"c{number}",
            *(share(gpu, 100 * (number + 1)) for gpu in range(part.count)),
            init=part.kind != "main",
            sidecar=part.kind == "sidecar",
        )
        for number, part in enumerate(shape)
        if part.count
    ]


def allocated(containers: list[ContainerGrant], chance: random.Random) -> dict[str, frozenset[str]]:
    """The tickets of each container, by kubelet's rules."""
    free, reusable, result = itertools.count(), set[str](), {}
    for each in containers:
        count = len(each.shares)
        own = set(chance.sample(sorted(reusable), min(count, len(reusable))))
        own |= {f"ticket-{next(free)}" for _ in range(count - len(own))}
        result[each.name] = frozenset(own)
        reusable = reusable | own if each.init and not each.sidecar else reusable - own
    return result


@pytest.mark.parametrize("seed", range(3))
def test_every_container_of_every_shape_gets_its_own_limits(seed: int) -> None:
    chance, tried = random.Random(seed), 0
    for shape in shapes():
        containers = granted(shape)
        if not containers:
            continue
        held = allocated(containers, chance)
        listed = [Holder("default", "p", c.name, held[c.name]) for c in containers if not c.init or c.sidecar]
        assigned = [Assignment("uid", name, tickets) for name, tickets in held.items()]
        grant = Grant(pod="p", pod_uid="uid", node="n", dialect="hami", containers=tuple(containers))
        record = [Holding(name=name, tickets=tickets) for name, tickets in held.items()]
        for starting in containers:
            tickets = held[starting.name]
            owner = find_listed(tickets, listed)
            uid, inits = find_assigned(tickets, assigned)
            same = [each for each in record if each.tickets == tickets]
            names = assign_names(same, grant, owner.container if owner else "", tickets, KIND, known_inits=inits)
            assert (uid, names[starting.name].name) == ("uid", starting.name), shape
            record = [bind(each, names) for each in record]
        tried += 1
    assert tried > 1000


def bind(allocation: Holding, names: dict[str, ContainerGrant]) -> Holding:
    if allocation.name not in names:
        return allocation
    grant = names[allocation.name]
    bound = Bound(namespace="default", pod="p", pod_uid="uid", container=grant.name, grant=grant)
    return Holding(name=allocation.name, tickets=allocation.tickets, bound=bound)
