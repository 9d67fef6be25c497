"""Pods and claims on one node: no GPU is handed out by both doors, wherever the agent dies, and defects are noticed."""

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.agent.inventory import usage
from lamina.agent.mig import grant_partitioner
from lamina.agent.resource_claims import preparer
from lamina.agent.resource_claims.dra_devices import Doors
from lamina.agent.resource_claims.preparer import ClaimPreparer
from lamina.agent.state.holdings import PreparedClaim
from lamina.ports.kube import RESOURCE_CLAIMS
from tests.whole_node.claims import Claim
from tests.whole_node.recovery import all_end, everything_comes_to_rest, nothing_of_pods_is_left, recover, settle
from tests.whole_node.world import World


@pytest.fixture
async def worlds(tmp_path: Path) -> AsyncIterator[Callable[[], World]]:
    made: list[World] = []

    def make() -> World:
        made.append(World(tmp_path / f"node{len(made)}"))
        return made[-1]

    yield make
    for each in made:
        await each.end()


@pytest.fixture
def world(worlds: Callable[[], World]) -> World:
    return worlds()


async def course(world: World, dies_at: int | None = None) -> None:
    """Claims run, pods come for the same GPUs, the holders of claims change by force, and all ends."""
    await world.begin()
    world.life.left = dies_at
    first = [await world.door.comes("large claim"), await world.door.comes("small claim")]
    await settle(world, 1)
    for kind in ("small", "over two"):
        await world.a_pod_comes(kind)
    await settle(world, 1)
    for claim in first:
        await world.door.ends(claim, forced=True)
    second = [await world.door.comes("large claim"), await world.door.comes("whole claim")]
    await settle(world, 2)
    for claim in (*first, *second):
        await world.door.ends(claim, forced=False)
    await recover(world)
    await all_end(world)
    await nothing_of_pods_is_left(world)


async def test_a_sound_agent_gets_through(world: World) -> None:
    with world.fake_ports():
        await course(world)


@pytest.mark.parametrize("dies_at", range(0, 40, 3))
async def test_an_agent_that_dies_gets_through(world: World, dies_at: int) -> None:
    with world.fake_ports():
        await course(world, dies_at)


async def test_claims_run_next_to_pods_and_come_to_rest(world: World) -> None:
    with world.fake_ports():
        await world.begin()
        await world.a_pod_comes("small")
        await settle(world, 2)
        claims = [await world.door.comes("small claim") for _ in range(2)]
        await settle(world, 2)
        assert all(claim.running is not None for claim in claims)
        assert all(pod.runs for pod in world.kubelet.pods.values())
        await everything_comes_to_rest(world)


async def partitioned(world: World, dies_at: int | None = None) -> None:
    """MIG devices are made for claims next to a share, which waits for them to end, and the reverse."""
    await world.begin()
    await world.configure("either")
    await settle(world, 2)
    world.life.left = dies_at
    first = [await world.door.comes(kind) for kind in ("mig claim", "large mig claim", "whole claim")]
    await settle(world, 2)
    second = [await world.door.comes(kind) for kind in ("small claim", "mig claim")]
    await settle(world, 2)
    for claim in first:
        await world.door.ends(claim, forced=claim is first[1])
    await settle(world, 3)
    for claim in second:
        await world.door.ends(claim, forced=False)
    await recover(world)
    await all_end(world)
    await nothing_of_pods_is_left(world)


async def test_claims_of_mig_devices_share_a_gpu(world: World) -> None:
    with world.fake_ports():
        await world.begin()
        await world.configure("either")
        await settle(world, 2)
        claims = [await world.door.comes(kind) for kind in ("mig claim", "large mig claim", "mig claim", "whole claim")]
        await settle(world, 3)
        assert [claim.running is not None for claim in claims] == [True] * 4, [claim.reason for claim in claims]
        assert len({claim.gpu for claim in claims[:3]}) == 1
        await everything_comes_to_rest(world)


@pytest.mark.parametrize("dies_at", [None, *range(0, 60, 4)])
async def test_an_agent_that_dies_over_mig_devices_gets_through(world: World, dies_at: int | None) -> None:
    with world.fake_ports():
        await partitioned(world, dies_at)


async def test_an_agent_that_forgets_the_mig_devices_of_claims(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(grant_partitioner, "required_instances", lambda node: frozenset())
    with world.fake_ports(), pytest.raises(AssertionError, match="not the MIG device of the claim"):
        await partitioned(world)


async def raced(world: World) -> None:
    """A claim and a pod get one GPU in the same moment."""
    await world.begin()
    for _ in range(2):
        await world.door.comes("whole claim")
    await world.a_pod_comes("over two")
    await world.schedule()
    await settle(world, 2)


async def test_doors_that_do_not_ask_each_other(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(usage, "check_uses", lambda *about: None)
    monkeypatch.setattr(Doors, "require_unused", lambda *about: None)
    with world.fake_ports(), pytest.raises(AssertionError, match="is in the modes"):
        await raced(world)


async def test_a_race_of_the_doors_is_decided(world: World) -> None:
    with world.fake_ports():
        await raced(world)
        running = [claim for claim in world.door.claims.values() if claim.running]
        assert bool(running) != any(pod.runs for pod in world.kubelet.pods.values())


async def replaced(world: World) -> Claim:
    """A claim is deleted by force, and its GPU is allocated again while the driver still has the first claim."""
    await world.begin()
    claims = [await world.door.comes("whole claim") for _ in range(2)]
    await settle(world, 1)
    gone = claims[0]
    await world.kube.delete(RESOURCE_CLAIMS, gone.name, namespace="default")
    later = await world.door.comes("large claim")
    await settle(world, 2)
    return later


async def test_a_gpu_that_is_still_prepared_is_not_given_again(world: World) -> None:
    with world.fake_ports():
        assert "has no room" in (await replaced(world)).reason


async def test_a_driver_that_does_not_count_what_it_prepared(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(preparer, "require_room", lambda *about: None)
    with world.fake_ports(), pytest.raises(AssertionError, match="claims have more than there is"):
        await replaced(world)


async def test_limits_that_are_not_those_of_the_claim(world: World, monkeypatch: Any) -> None:
    def without_limits(claims: Iterable[PreparedClaim], *others: Any) -> Any:
        return plan(map(_unlimited, claims), *others)

    plan = preparer.claims_plan
    monkeypatch.setattr(preparer, "claims_plan", without_limits)
    with world.fake_ports(), pytest.raises(AssertionError, match="not the limits of the claim"):
        await course(world)


def _unlimited(claim: PreparedClaim) -> PreparedClaim:
    return structs.replace(claim, requests=tuple(structs.replace(each, limited=False) for each in claim.requests))


async def test_a_driver_that_leaves_the_files_of_claims(world: World, monkeypatch: Any) -> None:
    async def forgets(driver: ClaimPreparer, claim: PreparedClaim) -> None:
        driver._record.drop_claim(claim.uid)
        driver._offer.changed()

    monkeypatch.setattr(ClaimPreparer, "_remove", forgets)
    with world.fake_ports(), pytest.raises(AssertionError, match="CDI specs"):
        await course(world)
