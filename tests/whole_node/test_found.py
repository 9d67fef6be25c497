"""Courses of events that the model has found, each as it was."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.whole_node import kinds
from tests.whole_node.calm import everything_comes_to_rest
from tests.whole_node.truth import check
from tests.whole_node.world import POLL_S, World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "node")
    with made.doors():
        await made.begin()
        yield made
        await made.end()


async def set_up(world: World, *, policy: str = "default", file: str = "") -> None:
    await world.configure(policy)
    await world.label(kinds.FILE_LABEL, file)
    await world.time_passes(2 * POLL_S)


@pytest.mark.parametrize(("policy", "file", "kind"), [("single", "renamed", "a replica"), ("default", "", "small")])
async def test_no_container_starts_on_a_gpu_that_was_cut_since_the_last_look(
    world: World, policy: str, file: str, kind: str
) -> None:
    await set_up(world, policy=policy, file=file)
    await world.a_pod_comes(kind)
    await world.label(kinds.MIG_LABEL, "all-3g.20gb")
    await world.agent_dies()
    await world.agent_starts()
    await world.schedule()
    await world.kubelet_works()
    await check(world)
    (reason,) = [each.reason for _, each in world.kubelet.containers]
    assert "is cut by MIG and has nothing to share" in reason
    await everything_comes_to_rest(world)
