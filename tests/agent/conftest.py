import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.ports.kube import NODES
from tests.agent.node import Node
from tests.agent.planted import MinedAgent, mined_agent
from tests.agent.running_agent import RunningAgent


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
async def mined(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MinedAgent]:
    async with mined_agent(monkeypatch) as made:
        yield made


@pytest.fixture
async def running() -> AsyncIterator[RunningAgent]:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        made = RunningAgent(Path(folder))
        await made.kube.create(NODES, {"metadata": {"name": made.node.name, "labels": {}}})
        await made.kubelet.start()
        yield made
        await made.stop()
        await made.kubelet.stop()
