"""S2.10 on a real kubelet: everything is taken back, and comes again when it is wanted."""

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios.reset import reset_and_return


@pytest.fixture
def lab(replay: Replay) -> Replay:
    replay.become("V100-PCIE-32GB", 2)
    return replay


def test_s2_10_reset(lab: Replay) -> None:
    reset_and_return(lab, lab.file_of_node("/run/cdi"))
    lab.delete_workloads()
