"""Idle shares are reclaimed after notice where the configuration allows it, and nowhere else."""

import pytest

from lamina.controller.eviction.idle_shares import KEEP, NOTICE, REPLICAS
from lamina.controller.eviction.notices import STALE_S
from lamina.ports.kube import PODS, STATEFUL_SETS
from tests.controller.idle_world import HOUR_S, NOTICE_S, IdleCluster
from tests.worlds.clocks import WrongClock


async def test_a_workload_gets_notice_and_is_scaled_to_zero_when_it_is_over() -> None:
    world = IdleCluster()
    await world.begin("a", "b")
    await world.round(3.9)
    assert not await world.annotations("a")
    await world.round(0.1)
    assert (await world.annotations("a"))[NOTICE] and await world.reasons() == {"IdleNotice"}
    await world.round(0.4)
    assert (await world.web())["spec"]["replicas"] == 2
    await world.round(0.1)
    found = await world.web()
    assert found["spec"]["replicas"] == 0 and found["metadata"]["annotations"] == {REPLICAS: "2"}
    assert "IdleShareReclaimed" in await world.reasons() and not world.evicted


async def test_a_workload_with_one_pod_at_work_is_left_alone() -> None:
    world = IdleCluster()
    await world.begin("a", "b")
    await world.round(4)
    world.idle_since[(await world.kube.get(PODS, "b", namespace="default"))["metadata"]["uid"]] = world.clock.wall()
    await world.round(0.5)
    assert (await world.web())["spec"]["replicas"] == 2
    assert NOTICE not in await world.annotations("b"), "the notice of a pod that works is withdrawn"
    assert (await world.annotations("a"))[NOTICE]


async def test_evictions_follow_the_same_notice() -> None:
    world = IdleCluster("hours: 4, namespaces: ['*'], action: evict")
    await world.begin("a", owner="Job")
    await world.round(4)
    await world.round(0.4)
    assert not world.evicted
    await world.round(0.1)
    assert world.evicted == ["a"] and (await world.web())["spec"]["replicas"] == 1


async def test_a_pod_that_a_disruption_budget_holds_stays_and_says_so() -> None:
    world = IdleCluster("hours: 4, namespaces: ['*'], action: evict")
    await world.allow_no_disruption()
    await world.begin("a", "b")
    await world.round(4)
    await world.round(0.5)
    assert "IdleShareKept" in await world.reasons() and await world.annotations("b")


@pytest.mark.parametrize(
    "settings",
    ["", "hours: 0, namespaces: ['*']", "hours: 4", "hours: 4, namespaces: [other]"],
)
async def test_it_is_off_by_default_and_in_other_namespaces(settings: str) -> None:
    world = IdleCluster(settings)
    await world.begin("a")
    for _ in range(3):
        await world.round(4)
    assert not await world.annotations("a") and (await world.web())["spec"]["replicas"] == 1


async def test_only_the_leader_reclaims() -> None:
    world = IdleCluster(leads=False)
    await world.begin("a")
    await world.round(9)
    assert not await world.annotations("a")


async def test_its_owner_may_keep_a_pod() -> None:
    world = IdleCluster()
    await world.begin("a")
    await world.round(4)
    await world.annotate("a", **{KEEP: "true"})
    await world.round(1)
    assert NOTICE not in await world.annotations("a") and (await world.web())["spec"]["replicas"] == 1


@pytest.mark.parametrize("written", ["soon", "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z", ""])
async def test_a_notice_that_nobody_could_have_read_is_given_again(written: str) -> None:
    """Whatever a tenant writes, and after an outage or another policy, the share is kept for the time of a notice."""
    world = IdleCluster()
    await world.begin("a")
    await world.annotate("a", **{NOTICE: written})
    await world.round(4)
    assert (await world.web())["spec"]["replicas"] == 1 and (await world.annotations("a"))[NOTICE] != written
    await world.round((NOTICE_S + STALE_S + 60) / HOUR_S)
    assert (await world.web())["spec"]["replicas"] == 1
    await world.round(NOTICE_S / HOUR_S)
    assert (await world.web())["spec"]["replicas"] == 0


async def test_pods_that_no_workload_can_scale_are_left_alone() -> None:
    world = IdleCluster()
    await world.begin("a", owner="Job")
    await world.round(4)
    await world.round(0.5)
    assert not world.evicted and (await world.web())["spec"]["replicas"] == 1


async def test_a_stateful_set_is_scaled_to_zero_too() -> None:
    world = IdleCluster()
    await world.begin("a", "b", owner="StatefulSet")
    await world.round(4)
    await world.round(0.5)
    found = await world.kube.get(STATEFUL_SETS, "web-1", namespace="default")
    assert found["spec"]["replicas"] == 0 and (await world.web())["spec"]["replicas"] == 2


@pytest.mark.parametrize("jump_s", [-7200.0, -NOTICE_S, 60.0, NOTICE_S + 360.0, 86400.0])
async def test_a_clock_that_jumps_ends_no_notice(jump_s: float) -> None:
    world = IdleCluster()
    world.clock = clock = WrongClock(1_700_000_000.0)
    await world.begin("a")
    await clock.sleep(4 * HOUR_S)
    evictions = await world.evictions()
    await evictions.reconcile()
    assert NOTICE in await world.annotations("a")
    await clock.sleep(60)
    clock.wrong_by = jump_s
    for _ in range(int(NOTICE_S / 60) - 2):
        await evictions.reconcile()
        await clock.sleep(60)
        assert (await world.web())["spec"]["replicas"] == 1
    clock.wrong_by = 0.0
    await clock.sleep(NOTICE_S + 60)
    await evictions.reconcile()
    await clock.sleep(NOTICE_S + 60)
    await evictions.reconcile()
    assert (await world.web())["spec"]["replicas"] == 0, "it ends when the time has passed"
