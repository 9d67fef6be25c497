"""One Lamina for all rows; each module has the node's GPUs and the configuration that its document tells of."""

from collections.abc import Iterator

import pytest

from lamina import simgpu
from tests.cluster.conftest import MACHINE
from tests.cluster.rows.replay import Replay
from tests.cluster.stage.stage import Stage
from tests.seeds import seed


@pytest.fixture(scope="package")
def replay(stage: Stage) -> Iterator[Replay]:
    """Skips where the documents are not there."""
    seed("000")
    with stage.steps("Lamina, for rows"):
        found = Replay(stage)
    yield found
    found.close(simgpu.parse(MACHINE.format(name=found.node)))
