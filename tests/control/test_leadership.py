"""Who leads: one at a time by spans of the monotonic clock, whatever wall clocks and networks do."""

import asyncio

import pytest

from lamina.control.leadership import LEADS_S, NAME, PROMISED_S, Leadership
from lamina.ports.kube import LEASES, Object, Resource, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.control.binders import Clock

NAMESPACE = "lamina-system"


class Pair:
    """Two replicas with clocks of their own, over one server."""

    def __init__(self) -> None:
        self.kube, self.clock = FakeKube(), Clock()
        self.wall = Clock(1_700_000_000.0)
        self.far = Clock(5.0)
        self.one = Leadership(self.kube, "one", now=self.clock, wall=self.wall)
        self.two = Leadership(self.kube, "two", now=self.far, wall=lambda: 1.0)

    def pass_(self, seconds: float) -> None:
        self.clock.time += seconds
        self.far.time += seconds

    async def lease(self) -> Object:
        return await self.kube.get(LEASES, NAME, namespace=NAMESPACE)


async def test_the_first_leads_and_the_second_waits() -> None:
    pair = Pair()
    await pair.one.attempt()
    await pair.two.attempt()
    assert pair.one.leading and not pair.two.leading and pair.two.holder == "one"
    for _ in range(10):
        pair.pass_(PROMISED_S / 2)
        await pair.one.attempt()
        await pair.two.attempt()
        assert pair.one.leading and not pair.two.leading


async def test_a_leader_stops_before_anybody_follows() -> None:
    pair = Pair()
    await pair.one.attempt()
    await pair.two.attempt()
    for _ in range(200):
        pair.pass_(0.1)
        await pair.two.attempt()
        assert not (pair.one.leading and pair.two.leading)
    assert pair.two.leading and (await pair.lease())["spec"]["leaseTransitions"] == 1
    await pair.one.attempt()
    assert not pair.one.leading


async def test_a_wall_clock_that_jumps_moves_nothing() -> None:
    pair = Pair()
    await pair.one.attempt()
    await pair.two.attempt()
    for jump in (86_400.0, -1_000_000.0):
        pair.wall.time += jump
        pair.pass_(1.0)
        await pair.one.attempt()
        await pair.two.attempt()
        assert pair.one.leading and not pair.two.leading


async def test_time_counts_from_before_the_question() -> None:
    pair = Pair()

    def slow(resource: Resource, name: str) -> None:
        pair.pass_(LEADS_S)

    pair.kube.failing["create"] = slow
    await pair.one.attempt()
    assert not pair.one.leading


async def test_a_server_that_does_not_answer_ends_the_lead_in_time() -> None:
    pair = Pair()
    await pair.one.attempt()
    pair.kube.failing["get"] = lambda resource, name: Unreachable("no answer")
    pair.pass_(LEADS_S)
    assert not pair.one.leading


async def test_a_replica_says_why_it_does_not_lead() -> None:
    pair = Pair()
    assert pair.one.lacking == "this replica does not lead; the Lease lamina-control is held by nobody"
    await pair.one.attempt()
    await pair.two.attempt()
    assert pair.one.lacking == ""
    assert pair.two.lacking == "this replica does not lead; the Lease lamina-control is held by one"
    pair.pass_(LEADS_S)
    assert pair.one.lacking == "this replica does not lead; it did not renew its Lease lamina-control within 7 s"
    await pair.one.attempt()
    await pair.one.step_down()
    assert pair.one.lacking == "this replica does not lead; the Lease lamina-control is held by nobody"


async def test_who_steps_down_is_followed_at_once_and_who_starts_anew_goes_on() -> None:
    pair = Pair()
    await pair.one.attempt()
    again = Leadership(pair.kube, "one", now=pair.clock, wall=pair.wall)
    await again.attempt()
    assert again.leading
    await again.step_down()
    await pair.two.attempt()
    assert pair.two.leading and not again.leading
    await again.step_down()
    assert (await pair.lease())["spec"]["holderIdentity"] == "two"


async def test_a_server_that_hangs_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leadership = Pair().one

    async def hang() -> None:
        raise TimeoutError

    monkeypatch.setattr(leadership, "attempt", hang)
    running = asyncio.create_task(leadership.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    assert "The Lease lamina-control could not be renewed: no answer" in caplog.text
