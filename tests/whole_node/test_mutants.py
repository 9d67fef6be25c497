"""What the model is for, it notices: an agent with a planted defect does not get through."""

from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.agent import parts
from lamina.agent.cleanup.release import Releaser
from lamina.agent.containers.paths import write_limits
from lamina.agent.inventory import reducer, usage
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mps import sharing
from lamina.agent.mps.clients import client_edits
from lamina.agent.mps.daemons import DaemonSupervisor
from lamina.agent.mps.sharing import GrantClients
from lamina.core.grants import ContainerGrant, Share
from tests.whole_node import kinds
from tests.whole_node.recovery import all_end, nothing_of_pods_is_left, settle
from tests.whole_node.world import POLL_S, World


@pytest.fixture
def world(new_world: World) -> World:
    return new_world


async def course(world: World) -> None:
    """A share, then whole GPUs by NVIDIA's file next to it, then the end of all."""
    await world.begin()
    await world.a_pod_comes("small")
    await settle(world, 1)
    await world.label(kinds.FILE_LABEL, "whole")
    await world.time_passes(2 * POLL_S)
    await world.a_pod_comes("a GPU")
    await world.a_pod_comes("a GPU")
    await settle(world, 2)
    await all_end(world)
    await nothing_of_pods_is_left(world)


async def test_a_sound_agent_gets_through(world: World) -> None:
    await course(world)


async def test_gpus_with_shares_that_are_offered_as_plain_devices(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(reducer, "is_free_for", lambda *about: True)
    monkeypatch.setattr(usage, "check_uses", lambda *about: None)
    with pytest.raises(AssertionError, match="is in the modes"):
        await course(world)


async def test_limits_that_are_not_those_of_the_grant(world: World, monkeypatch: Any) -> None:
    def twice(folder: Path, container: ContainerGrant, shares: tuple[Share, ...]) -> None:
        more = tuple(structs.replace(each, memory_mib=2 * each.memory_mib) for each in shares)
        write_limits(folder, container, more)

    monkeypatch.setattr(parts, "write_limits", twice)
    with pytest.raises(AssertionError, match="not the limits of the grant"):
        await course(world)


async def test_a_release_that_leaves_the_files(world: World, monkeypatch: Any) -> None:
    def forgets(releaser: Releaser, names: Set[str]) -> None:
        releaser._record.drop(names)

    monkeypatch.setattr(Releaser, "release", forgets)
    with pytest.raises(AssertionError, match="CDI specs"):
        await course(world)


async def client_course(world: World) -> None:
    """Clients of MPS, and when they have ended, a pod with all GPUs."""
    await world.begin()
    await world.configure("mps first")
    await world.time_passes(2 * POLL_S)
    for _ in range(3):
        await world.a_pod_comes("vgpu, mps")
    await settle(world, 1)
    for number in range(3):
        await world.delete(f"p{number + 1}")
    await world.time_passes(2 * POLL_S)
    await world.a_pod_comes("two GPUs")
    await settle(world, 2)
    await all_end(world)
    await nothing_of_pods_is_left(world)


async def test_a_sound_agent_gets_clients_of_mps_through(world: World) -> None:
    await client_course(world)


@pytest.mark.parametrize("vacates", [True, False])
async def test_a_daemon_that_stays_when_the_gpu_is_used_otherwise(
    world: World, monkeypatch: Any, vacates: bool
) -> None:
    """Daemons without clients are not looked after here, so that the next container finds them."""

    async def nothing(*about: object) -> None: ...

    monkeypatch.setattr(DaemonSupervisor, "reconcile", nothing)
    if vacates:
        await client_course(world)
        return
    monkeypatch.setattr(GrantClients, "vacate", nothing)
    with pytest.raises(AssertionError, match="a daemon of MPS with"):
        await client_course(world)


async def test_clients_that_start_without_their_daemon(world: World, monkeypatch: Any) -> None:
    async def nothing(clients: GrantClients, shares: object) -> None: ...

    monkeypatch.setattr(GrantClients, "provide", nothing)
    with pytest.raises(AssertionError, match="its daemon of MPS is gone"):
        await client_course(world)


async def test_a_client_without_its_limits(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(sharing, "share_edits", lambda resource, home, share: client_edits(resource, home))
    with pytest.raises((AssertionError, KeyError)):
        await client_course(world)


async def test_instances_that_are_never_removed(world: World, monkeypatch: Any) -> None:
    async def nothing(on_demand: GrantPartitioner, gpu: str) -> list[str]:
        return []

    monkeypatch.setattr(GrantPartitioner, "_tidy", nothing)
    await world.begin()
    await world.configure("mig alone")
    await world.time_passes(2 * POLL_S)
    await world.a_pod_comes("small")
    await settle(world, 1)
    assert any(world.nvml.instances.values())
    await all_end(world)
    with pytest.raises(AssertionError, match="made for grants"):
        await nothing_of_pods_is_left(world)
