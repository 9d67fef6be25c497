"""Running pods are resized on a whole node, through crashes and reboots, and planted defects are found."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.agent.limits import container_resizer as agent
from lamina.controller import resizer
from lamina.core.quantities import MIB
from lamina.core.sizes import RESIZE_STATUS
from lamina.enforcement import Limits, read_limits
from lamina.enforcement.live_limits import Ask, resize_container
from lamina.ports.kube import PODS
from tests.whole_node.invariants import check
from tests.whole_node.recovery import all_end, nothing_of_pods_is_left, settle
from tests.whole_node.world import World


@pytest.fixture
def world(new_world: World) -> World:
    return new_world


async def begin(world: World) -> str:
    """A pod of 9000 MiB and 40 percent that runs."""
    await world.begin()
    name = await world.a_pod_comes("timed")
    await settle(world, 1)
    return name


async def course(world: World, *, die_at: int | None = None) -> None:
    """It gets more, then less, while the agent may die at any of its calls, and the node reboots at the end."""
    name = await begin(world)
    for other_size, size in (("c0=12000,60", (12000, 60)), ("c0=2000,10", (2000, 10))):
        await world.resize(name, other_size)
        world.life.left = die_at
        await settle(world, 2)
        world.life.left = None
        await settle(world, 2)
        assert await status(world, name) == f"done {other_size}" and may_use(world) == size
    await world.reboot()
    await settle(world, 2)
    assert may_use(world) == (2000, 10)
    await all_end(world)
    await nothing_of_pods_is_left(world)


async def status(world: World, name: str) -> str:
    pod = await world.kube.get(PODS, name, namespace="default")
    return str(pod["metadata"]["annotations"].get(RESIZE_STATUS))


def may_use(world: World) -> tuple[int, int]:
    """MiB and percent in the file that the container has."""
    ((_, container),) = list(world.kubelet.containers)
    assert container.running is not None
    (device,) = read_limits(Path(container.running.mounts["/run/lamina/limits"])).devices
    return device.memory_bytes // MIB, device.cores_percent


async def test_a_sound_node_gets_through(world: World) -> None:
    await course(world)


@pytest.mark.parametrize("die_at", range(0, 24, 3))
async def test_an_agent_that_dies_on_the_way_gets_through(world: World, die_at: int) -> None:
    await course(world, die_at=die_at)


async def test_sizes_that_the_agent_writes_larger_than_granted(world: World, monkeypatch: Any) -> None:
    async def twice(folder: Path, limits: Limits, ask: Ask | None) -> None:
        more = tuple(structs.replace(each, memory_bytes=2 * each.memory_bytes) for each in limits.devices)
        await resize_container(folder, structs.replace(limits, devices=more), ask)

    monkeypatch.setattr(agent, "resize_container", twice)
    with pytest.raises(AssertionError, match="more memory than counts as taken"):
        await course(world)


async def test_room_that_is_given_back_before_the_agent_has_applied_the_size(world: World, monkeypatch: Any) -> None:
    name = await begin(world)
    monkeypatch.setattr(resizer.Resizer, "_unapplied", lambda self, record: "")
    await world.resize(name, "c0=2000,10")
    with pytest.raises(AssertionError, match="more memory than counts as taken"):
        for _ in range(3):
            await world.schedule()
            await check(world)
            await world.time_passes(0.1)


async def test_a_size_that_the_agent_forgets_when_the_node_reboots(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(resizer, "with_sizes", lambda grant, sizes: grant)
    with pytest.raises(AssertionError):
        await course(world)
