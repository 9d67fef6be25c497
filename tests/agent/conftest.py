from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.node import Node
from tests.agent.planted import MinedAgent, mined_agent


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
async def mined(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MinedAgent]:
    async with mined_agent(monkeypatch) as made:
        yield made
