"""NodeLeases: who has not read the grants that came before gets none."""

import asyncio

import pytest

from lamina.controller.binding import node_leases
from lamina.controller.binding.node_leases import NodeLeases, lease_name
from lamina.controller.ledger.ledger import DoesNotFit
from lamina.errors import NotYet
from lamina.ports.clock import FakeClock
from lamina.ports.kube import LEASES, Conflict, Unreachable
from lamina.ports.kube.fake import FakeKube


class Replica:
    def __init__(self, kube: FakeKube, name: str) -> None:
        self.read: list[str] = []
        uids = {"owned": "uid-1"}
        self.leases = NodeLeases(
            kube, FakeClock(), name, catch_up=self._catch_up, uid_of=lambda node: uids.get(node, "")
        )

    async def _catch_up(self, node: str) -> None:
        self.read.append(node)


def fits() -> None:
    """A check that finds nothing wrong."""


def does_not_fit() -> None:
    raise DoesNotFit("it is taken")


async def test_a_replica_reads_a_node_once_while_it_is_alone() -> None:
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    for _ in range(3):
        await one.leases.take_turn("a", fits)
    assert one.read == ["a"]
    await two.leases.take_turn("a", fits)
    await one.leases.take_turn("a", fits)
    assert one.read == ["a", "a"] and two.read == ["a"]


async def test_a_lease_goes_with_its_node() -> None:
    """Clusters grow and shrink, and no one else would ever take it away."""
    kube = FakeKube()
    one = Replica(kube, "one")
    for node in ("owned", "unknown"):
        await one.leases.take_turn(node, fits)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "owned", "uid": "uid-1"}
    for node, owners in (("owned", [owner]), ("unknown", [])):
        lease = await kube.get(LEASES, lease_name(node), namespace="lamina-system")
        assert lease["metadata"].get("ownerReferences", []) == owners
    await kube.delete(LEASES, lease_name("owned"), namespace="lamina-system")
    await one.leases.take_turn("owned", fits)
    assert one.read == ["owned", "unknown", "owned"]


async def test_what_does_not_fit_leaves_the_node_to_others() -> None:
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    await two.leases.take_turn("a", fits)
    with pytest.raises(DoesNotFit):
        await one.leases.take_turn("a", does_not_fit)
    await two.leases.take_turn("a", fits)
    assert two.read == ["a"]


async def test_turns_that_wait_together_share_one_write() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    await one.leases.take_turn("a", fits)
    kube.calls.clear()
    await asyncio.gather(*(one.leases.take_turn("a", fits) for _ in range(40)))
    assert [verb for verb, resource, _ in kube.calls if resource == LEASES] == ["replace", "replace"]


async def test_a_turn_that_began_before_a_grant_was_written_is_not_its_turn() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    begun = asyncio.Event()
    kube.failing["replace"] = lambda resource, name: begun.set()
    first = asyncio.create_task(one.leases.take_turn("a", fits))
    await begun.wait()
    second = asyncio.create_task(one.leases.take_turn("a", fits))
    await asyncio.gather(first, second)
    assert sum(verb == "replace" for verb, _, _ in kube.calls) == 2


async def test_an_answer_that_is_lost_means_to_read_again() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    await one.leases.take_turn("a", fits)
    kube.failing["replace"] = lambda resource, name: Unreachable("lost")
    with pytest.raises(Unreachable):
        await one.leases.take_turn("a", fits)
    kube.failing.clear()
    await one.leases.take_turn("a", fits)
    assert one.read == ["a", "a"]


async def test_who_never_gets_a_turn_says_so() -> None:
    kube = FakeKube()
    kube.failing["replace"] = lambda resource, name: Conflict("another was faster")
    with pytest.raises(NotYet, match="node a"):
        await Replica(kube, "one").leases.take_turn("a", fits)


async def test_nodes_that_are_long_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_leases, "MOST_NODES", 3)
    one = Replica(FakeKube(), "one")
    for name in ("a", "b", "a", "c", "d", "a", "b"):
        await one.leases.take_turn(name, fits)
    assert one.leases.remembered == 3
    assert one.read == ["a", "b", "c", "d", "b"]


def test_the_name_of_a_lease_fits_however_long_the_node_is_called() -> None:
    assert lease_name("a") == "node-a"
    assert len(lease_name("n" * 253)) <= 253 and lease_name("n" * 253) != lease_name("n" * 252 + "m")
