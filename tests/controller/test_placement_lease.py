"""Turns on the placement Lease: who has not read the grants that came before gets none."""

import asyncio

import pytest

from lamina.controller.binding import placement_lease
from lamina.controller.binding.placement_lease import PlacementLease
from lamina.core.component_names import TURNS_LEASE
from lamina.errors import NotYet
from lamina.ledger.ledger import DoesNotFit
from lamina.ports.clock import FakeClock
from lamina.ports.kube import LEASES, Conflict, Object, Resource, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.waiting import until


class Replica:
    def __init__(self, kube: FakeKube, name: str, *, distance_s: float = 0.0) -> None:
        self.read: list[str] = []
        self.clock = FakeClock()
        self.turns = PlacementLease(
            kube,
            self.clock,
            name,
            catch_up=self._catch_up,
            catch_up_namespace=self._catch_up_namespace,
            distance_s=distance_s,
        )

    async def _catch_up(self, node: str) -> None:
        self.read.append(node)

    async def _catch_up_namespace(self, namespace: str) -> None:
        self.read.append(f"namespace {namespace}")


def fits() -> None:
    """A check that finds nothing wrong."""


def does_not_fit() -> None:
    raise DoesNotFit("it is taken")


def writes(kube: FakeKube) -> int:
    return sum(verb == "replace" for verb, _, _ in kube.calls)


async def test_a_replica_reads_a_node_once_while_it_is_alone() -> None:
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    for node in ("a", "a", "b", "a", "b"):
        await one.turns.take(node, fits)
    assert one.read == ["a", "b"]
    await two.turns.take("a", fits)
    for node in ("b", "a", "b", "a"):
        await one.turns.take(node, fits)
    assert one.read == ["a", "b", "b", "a"]
    assert two.read == ["a"]


async def test_a_namespace_is_read_once_while_a_replica_is_alone() -> None:
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    for node in ("a", "b", "a"):
        await one.turns.take(node, fits, namespace="n")
    assert one.read == ["a", "namespace n", "b"]
    await one.turns.take("n", fits)
    assert one.read == ["a", "namespace n", "b", "n"], "a node of the same name is something else"
    await two.turns.take("c", fits)
    await one.turns.take("a", fits, namespace="n")
    assert one.read[4:] == ["a", "namespace n"]


async def test_a_deleted_lease_means_to_read_again() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    await one.turns.take("a", fits)
    await kube.delete(LEASES, TURNS_LEASE, namespace="lamina-system")
    await one.turns.take("a", fits)
    assert one.read == ["a", "a"]


async def test_what_does_not_fit_leaves_the_turn_to_others() -> None:
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
    await one.turns.take("n0", fits)
    kube.calls.clear()
    await asyncio.gather(*(one.turns.take(f"n{number % 4}", fits) for number in range(40)))
    assert writes(kube) <= 3 and sorted(one.read) == ["n0", "n1", "n2", "n3"]


async def test_turns_keep_a_distance_and_the_first_does_not_wait() -> None:
    kube = FakeKube()
    one = Replica(kube, "one", distance_s=0.05)
    await one.turns.take("a", fits)
    kube.calls.clear()
    waiting = [asyncio.create_task(one.turns.take(node, fits)) for node in "ab"]
    await one.clock.advance(0.04)
    later = asyncio.create_task(one.turns.take("c", fits))
    await one.clock.advance(0.005)
    assert writes(kube) == 0 and not any(task.done() for task in waiting)
    await one.clock.advance(0.01)
    await asyncio.gather(*waiting, later)
    assert writes(kube) == 1


async def test_a_turn_that_began_before_a_grant_was_written_is_not_its_turn() -> None:
    kube = FakeKube()
    one = Replica(kube, "one")
    await one.turns.take("a", fits)
    kube.calls.clear()
    begun = asyncio.Event()
    kube.failing["replace"] = lambda resource, name: begun.set()
    first = asyncio.create_task(one.turns.take("a", fits))
    await begun.wait()
    second = asyncio.create_task(one.turns.take("b", fits))
    await asyncio.gather(first, second)
    assert writes(kube) == 2


async def test_who_shares_the_turn_of_a_new_epoch_reads_its_node_again() -> None:
    """Another replica wrote in between: what was read before does not count, also for who shares a turn."""
    kube = FakeKube()
    one, two = Replica(kube, "one"), Replica(kube, "two")
    for node in "ab":
        await one.turns.take(node, fits)
    await two.turns.take("b", fits)
    await asyncio.gather(one.turns.take("a", fits), one.turns.take("b", fits))
    assert sorted(one.read) == ["a", "a", "b", "b"]


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


async def test_a_bind_that_is_given_up_during_its_turn_ends_the_epoch() -> None:
    class Silent(FakeKube):
        silent = asyncio.Event()

        async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
            answer = await super().replace(resource, obj, subresource=subresource)
            if self.silent.is_set():
                self.silent.clear()
                await asyncio.Event().wait()
            return answer

    kube = Silent()
    one = Replica(kube, "one")
    await one.turns.take("a", fits)
    kube.silent.set()
    given_up = asyncio.create_task(one.turns.take("a", fits))
    await until(lambda: not kube.silent.is_set())
    given_up.cancel()
    await one.turns.take("a", fits)
    assert one.read == ["a", "a"]


async def test_who_never_gets_a_turn_says_so() -> None:
    kube = FakeKube()
    kube.failing["replace"] = lambda resource, name: Conflict("another was faster")
    await kube.create(LEASES, {"metadata": {"name": TURNS_LEASE, "namespace": "lamina-system"}})
    with pytest.raises(NotYet, match="node a"):
        await Replica(kube, "one").turns.take("a", fits)


async def test_nodes_that_are_long_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_lease, "MAX_SCOPES", 3)
    one = Replica(FakeKube(), "one")
    for name in ("a", "b", "a", "c", "d", "a", "b"):
        await one.turns.take(name, fits)
    assert one.turns.remembered == 3
    assert one.read == ["a", "b", "c", "d", "b"]
