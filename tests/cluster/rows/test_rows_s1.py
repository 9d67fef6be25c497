"""S1 on real kubelets and a real scheduler: Volcano's document, on eight T4 and on an A100 that may be cut."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import volcano as s1
from tests.scenarios import volcano_mig as mig
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["S1 MIG"]
hami_core, mig_pod = s1.hami_core, mig.mig_pod


def test_s1_1_allocatable_has_the_sums_of_the_node(replay: Replay) -> None:
    replay.become("T4", 8)
    s1.sums_of_eight(replay)


@pytest.fixture
def lab(served: Replay) -> Iterator[Replay]:
    yield served
    served.delete_workloads()
    wait_until(lambda: "instances" not in mig.gpu(served), lambda: str(mig.gpu(served)))


globals().update(TABLE["S1"].tests)
globals().update(ROWS.tests)
