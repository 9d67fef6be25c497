"""Turns: who has not read the grants that came before gets none."""

import asyncio

import pytest

from lamina.control.ledger import DoesNotFit
from lamina.control.turns import Turns, lease_name
from lamina.errors import NotYet
from lamina.ports.kube import LEASES, Conflict, Unreachable
from lamina.ports.kube.fake import FakeKube


class Replica:
    def __init__(self, kube: FakeKube, name: str) -> None:
        self.read: list[str] = []
        uids = {"owned": "uid-1"}
        self.turns = Turns(
            kube, name, catch_up=self._catch_up, wall=lambda: 0.0, uid_of=lambda node: uids.get(node, "")
        )

    async def _catch_up(self, node: str) -> None:
        self.read.append(node)


def fits() -> None:
    """A check that finds nothing wrong."""


def does_not_fit() -> None:
    raise DoesNotFit("it is taken")


async def test_a_replica_reads_a_node_once_while_nobody_else_was_there() -> None:
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    for _ in range(3):
        await one.turns.take("a", fits)
    assert one.read == ["a"]
    await two.turns.take("a", fits)
    await one.turns.take("a", fits)
    assert one.read == ["a", "a"] and two.read == ["a"]


async def test_a_lease_goes_with_its_node() -> None:
    """Clusters grow and shrink, and nobody else would ever take it away."""
    kube = FakeKube()
    one = Replica(kube, "one")
    for node in ("owned", "unknown"):
        await one.turns.take(node, fits)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "owned", "uid": "uid-1"}
    for node, owners in (("owned", [owner]), ("unknown", [])):
        lease = await kube.get(LEASES, lease_name(node), namespace="lamina-system")
        assert lease["metadata"].get("ownerReferences", []) == owners
    await kube.delete(LEASES, lease_name("owned"), namespace="lamina-system")
    await one.turns.take("owned", fits)
    assert one.read == ["owned", "unknown", "owned"]


async def test_what_does_not_fit_leaves_the_node_to_others() -> None:
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    await two.turns.take("a", fits)
    with pytest.raises(DoesNotFit):
        await one.turns.take("a", does_not_fit)
    await two.turns.take("a", fits)
    assert two.read == ["a"]


async def test_turns_that_wait_together_share_one_write() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    await one.turns.take("a", fits)
    kube.calls.clear()
    await asyncio.gather(*(one.turns.take("a", fits) for _ in range(40)))
    assert [verb for verb, resource, _ in kube.calls if resource == LEASES] == ["replace", "replace"]


async def test_a_turn_that_began_before_a_grant_was_written_is_not_its_turn() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    begun = asyncio.Event()
    kube.failing["replace"] = lambda resource, name: begun.set()
    first = asyncio.create_task(one.turns.take("a", fits))
    await begun.wait()
    second = asyncio.create_task(one.turns.take("a", fits))
    await asyncio.gather(first, second)
    assert sum(verb == "replace" for verb, _, _ in kube.calls) == 2


async def test_an_answer_that_is_lost_means_to_read_again() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    await one.turns.take("a", fits)
    kube.failing["replace"] = lambda resource, name: Unreachable("lost")
    with pytest.raises(Unreachable):
        await one.turns.take("a", fits)
    kube.failing.clear()
    await one.turns.take("a", fits)
    assert one.read == ["a", "a"]


async def test_who_never_gets_a_turn_says_so() -> None:
    kube = FakeKube()
    kube.failing["replace"] = lambda resource, name: Conflict("another was faster")
    with pytest.raises(NotYet, match="node a"):
        await Replica(kube, "one").turns.take("a", fits)


def test_the_name_of_a_lease_fits_however_long_the_node_is_called() -> None:
    assert lease_name("a") == "node-a"
    assert len(lease_name("n" * 253)) <= 253 and lease_name("n" * 253) != lease_name("n" * 252 + "m")
