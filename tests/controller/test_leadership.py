"""Who leads: one at a time by spans of the monotonic clock, whatever wall clocks and networks do."""

import asyncio

import pytest

from lamina.controller.leadership.election import LEADS_S, LEASE_S, LeaderElection
from lamina.core.component_names import LEADER_LEASE
from lamina.ports.kube import LEASES, Object, Resource, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.worlds.clocks import SettableClock

NAMESPACE = "lamina-system"


class Pair:
    """Two replicas with clocks of their own, over one server."""

    def __init__(self) -> None:
        self.kube, self.clock = FakeKube(), SettableClock(wall_time=1_700_000_000.0)
        self.far = SettableClock(5.0, wall_time=1.0)
        self.one = LeaderElection(self.kube, self.clock, "one")
        self.two = LeaderElection(self.kube, self.far, "two")

    def pass_(self, seconds: float) -> None:
        self.clock.time += seconds
        self.far.time += seconds

    async def lease(self) -> Object:
        return await self.kube.get(LEASES, LEADER_LEASE, namespace=NAMESPACE)


async def test_the_first_leads_and_the_second_waits() -> None:
    pair = Pair()
    await pair.one.try_lead()
    await pair.two.try_lead()
    assert pair.one.leading and not pair.two.leading and pair.two.holder == "one"
    for _ in range(10):
        pair.pass_(LEASE_S / 2)
        await pair.one.try_lead()
        await pair.two.try_lead()
        assert pair.one.leading and not pair.two.leading


async def test_a_leader_stops_before_anybody_follows() -> None:
    pair = Pair()
    await pair.one.try_lead()
    await pair.two.try_lead()
    for _ in range(200):
        pair.pass_(0.1)
        await pair.two.try_lead()
        assert not (pair.one.leading and pair.two.leading)
    assert pair.two.leading and (await pair.lease())["spec"]["leaseTransitions"] == 1
    await pair.one.try_lead()
    assert not pair.one.leading


async def test_a_lease_with_as_many_transitions_as_there_can_be_is_taken() -> None:
    """The API server refuses a number that does not fit into 32 bits."""
    pair, most = Pair(), 2**31 - 1
    lease: Object = {"metadata": {"name": LEADER_LEASE, "namespace": NAMESPACE}, "spec": {"leaseTransitions": most}}
    await pair.kube.create(LEASES, lease, namespace=NAMESPACE)
    await pair.one.try_lead()
    assert pair.one.leading and (await pair.lease())["spec"]["leaseTransitions"] == most
    pair.pass_(2 * LEASE_S)
    await pair.two.try_lead()
    pair.pass_(2 * LEASE_S)
    await pair.two.try_lead()
    assert pair.two.leading and (await pair.lease())["spec"]["leaseTransitions"] == most


async def test_a_wall_clock_that_jumps_moves_nothing() -> None:
    pair = Pair()
    await pair.one.try_lead()
    await pair.two.try_lead()
    for jump in (86_400.0, -1_000_000.0):
        pair.clock.wall_time += jump
        pair.pass_(1.0)
        await pair.one.try_lead()
        await pair.two.try_lead()
        assert pair.one.leading and not pair.two.leading


async def test_time_counts_from_before_the_question() -> None:
    pair = Pair()

    def slow(resource: Resource, name: str) -> None:
        pair.pass_(LEADS_S)

    pair.kube.failing["create"] = slow
    await pair.one.try_lead()
    assert not pair.one.leading


async def test_a_server_that_does_not_answer_ends_the_lead_in_time() -> None:
    pair = Pair()
    await pair.one.try_lead()
    pair.kube.failing["get"] = lambda resource, name: Unreachable("no answer")
    pair.pass_(LEADS_S)
    assert not pair.one.leading


async def test_a_replica_says_why_it_does_not_lead() -> None:
    pair = Pair()
    assert pair.one.reason == "this replica does not lead; the Lease lamina-controller is held by no replica"
    await pair.one.try_lead()
    await pair.two.try_lead()
    assert pair.one.reason == ""
    assert pair.two.reason == "this replica does not lead; the Lease lamina-controller is held by one"
    pair.pass_(LEADS_S)
    assert pair.one.reason == "this replica does not lead; it did not renew its Lease lamina-controller within 7 s"
    await pair.one.try_lead()
    await pair.one.step_down()
    assert pair.one.reason == "this replica does not lead; the Lease lamina-controller is held by no replica"


async def test_a_leader_that_steps_down_is_followed_at_once_and_a_restarted_one_continues() -> None:
    pair = Pair()
    await pair.one.try_lead()
    again = LeaderElection(pair.kube, pair.clock, "one")
    await again.try_lead()
    assert again.leading
    await again.step_down()
    await pair.two.try_lead()
    assert pair.two.leading and not again.leading
    await again.step_down()
    assert (await pair.lease())["spec"]["holderIdentity"] == "two"


async def test_a_server_that_hangs_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leadership = Pair().one

    async def hang() -> None:
        raise TimeoutError

    monkeypatch.setattr(leadership, "try_lead", hang)
    running = asyncio.create_task(leadership.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    assert "Cannot renew the Lease lamina-controller: no answer" in caplog.text
