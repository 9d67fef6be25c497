from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.whole_node.world import World


@pytest.fixture
async def new_world(tmp_path: Path) -> AsyncIterator[World]:
    """Nothing of it has begun."""
    made = World(tmp_path / "node")
    with made.fake_ports():
        yield made
        await made.end()


@pytest.fixture
async def world(new_world: World) -> World:
    await new_world.begin()
    return new_world
