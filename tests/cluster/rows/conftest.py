"""One Lamina for all rows; each module has the node's GPUs and the configuration that its document tells of."""

from collections.abc import Iterator

import pytest

from lamina_lab import simgpu
from tests.cluster.components.cluster import RealCluster
from tests.cluster.conftest import MACHINE
from tests.cluster.rows.replay import Replay
from tests.seeds import seed


@pytest.fixture(scope="package")
def replay(cluster: RealCluster) -> Iterator[Replay]:
    """Skips where the documents are not there."""
    seed("000")
    with cluster.steps("Lamina, for rows"):
        found = Replay(cluster)
    yield found
    found.close(simgpu.parse(MACHINE.format(name=found.node)))


@pytest.fixture(scope="module")
def served(replay: Replay, request: pytest.FixtureRequest) -> Replay:
    """As the document of the module's `ROWS` sets it up."""
    replay.serve(request.module.ROWS)
    return replay


@pytest.fixture
def lab(served: Replay) -> Iterator[Replay]:
    yield served
    served.delete_workloads()
