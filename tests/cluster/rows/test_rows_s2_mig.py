"""S2 on real kubelets: MIG as the post cuts it by labels, and its pod, on two A100."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import mig_labels as mig
from tests.scenarios.rows import TABLE


@pytest.fixture(scope="module")
def a100(replay: Replay) -> Replay:
    replay.serve(TABLE["S2 MIG"])
    return replay


@pytest.fixture
def lab(a100: Replay) -> Iterator[Replay]:
    yield a100
    a100.delete_workloads()


globals().update(TABLE["S2 MIG"].tests)


def test_s2_4_the_remaining_labels_of_the_post(lab: Replay) -> None:
    for name, devices in (("all-2g.10gb", {"2g.10gb": 6}), ("all-7g.40gb", {"7g.40gb": 2})):
        mig.partition(lab, name, devices)
