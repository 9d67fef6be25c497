"""S4 on real kubelets and a real scheduler: 4paradigm's functional test, on its two V100."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import vgpu_scheduler as s4
from tests.scenarios.rows import SCALED, TABLE

ten_replicas, one_allocating, five_large = s4.ten_replicas, s4.one_allocating, s4.five_large


@pytest.fixture(scope="module")
def v100(replay: Replay) -> Replay:
    replay.serve(TABLE["S4"])
    return replay


@pytest.fixture
def lab(v100: Replay) -> Iterator[Replay]:
    yield v100
    v100.delete_workloads()


globals().update(TABLE["S4"].tests)


@pytest.fixture(scope="module")
def scaled_lab(v100: Replay) -> Replay:
    """Comes after the rows without scaling."""
    v100.serve(TABLE["S4"]._replace(config=SCALED))
    return v100
