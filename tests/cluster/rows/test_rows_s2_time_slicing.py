"""S2 on real kubelets: time-slicing as the document about GPU sharing on OpenShift sets it up, on two A100."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import time_slicing as slicing
from tests.scenarios.rows import TABLE

eleven = slicing.eleven


@pytest.fixture(scope="module")
def a100(replay: Replay) -> Replay:
    replay.serve(TABLE["S2 time-slicing"])
    slicing.slice_gpus(replay)
    return replay


@pytest.fixture
def lab(a100: Replay) -> Iterator[Replay]:
    yield a100
    a100.delete_workloads()


globals().update(TABLE["S2 time-slicing"].tests)
