"""Borrowers whose memory neighbors need are evicted after notice where the configuration says so, and nowhere else."""

import pytest

from lamina.controller.eviction.borrowers import KEEP, NOTICE
from lamina.controller.eviction.notices import STALE_S
from tests.controller.borrower_world import Borrowing


async def test_a_borrower_gets_notice_and_is_evicted_when_it_is_over() -> None:
    world = Borrowing()
    await world.begin("a", "b")
    await world.look()
    assert not await world.annotations("a")
    await world.displace("a")
    await world.look()
    assert (await world.annotations("a"))[NOTICE] and not await world.annotations("b")
    assert await world.reasons() == {"BorrowerNotice"}
    await world.look(59)
    assert world.evicted == []
    await world.look(1)
    assert world.evicted == ["a"] and "BorrowerEvicted" in await world.reasons()


async def test_one_that_returns_its_memory_is_kept() -> None:
    world = Borrowing()
    await world.begin("a")
    await world.displace("a")
    await world.look()
    world.displaced.clear()
    await world.look(50)
    assert NOTICE not in await world.annotations("a")
    await world.look(60)
    assert world.evicted == []


async def test_its_owner_may_keep_it() -> None:
    world = Borrowing()
    await world.begin("a")
    await world.displace("a")
    await world.annotate("a", **{KEEP: "true"})
    await world.look()
    await world.look(600)
    assert world.evicted == [] and NOTICE not in await world.annotations("a")


@pytest.mark.parametrize("written", ["soon", "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z", ""])
async def test_whatever_a_tenant_writes_it_has_the_time_of_a_notice(written: str) -> None:
    world = Borrowing()
    await world.begin("a")
    await world.displace("a")
    await world.annotate("a", **{NOTICE: written})
    await world.look()
    assert world.evicted == [] and (await world.annotations("a"))[NOTICE] != written
    await world.look(STALE_S + 120)
    assert world.evicted == []
    await world.look(60)
    assert world.evicted == ["a"]


@pytest.mark.parametrize(
    "settings", ["", "namespaces: [default]", "seconds: 30", "seconds: 30, namespaces: [other]", "seconds: 0"]
)
async def test_it_is_off_by_default_and_in_other_namespaces(settings: str) -> None:
    world = Borrowing(settings)
    await world.begin("a")
    await world.displace("a")
    for _ in range(3):
        await world.look(100)
    assert world.evicted == [] and not await world.annotations("a")


async def test_only_the_leader_evicts() -> None:
    world = Borrowing(leads=False)
    await world.begin("a")
    await world.displace("a")
    await world.look(100)
    assert not await world.annotations("a")


async def test_a_pod_that_a_disruption_budget_holds_stays_and_says_so() -> None:
    world = Borrowing()
    await world.allow_no_disruption()
    await world.begin("a")
    await world.displace("a")
    await world.look()
    await world.look(60)
    assert "BorrowerKept" in await world.reasons() and (await world.annotations("a"))[NOTICE]


async def test_nothing_is_asked_for_while_there_is_nothing_to_do() -> None:
    world = Borrowing()
    await world.begin("a")
    evictions = await world.evictions()
    await evictions.reconcile()
    asked = len(world.kube.calls)
    for _ in range(5):
        await evictions.reconcile()
    assert len(world.kube.calls) == asked
