"""S4 on real kubelets and a real scheduler: 4paradigm's functional test, on its two V100."""

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import vgpu_scheduler as s4
from tests.scenarios.rows import SCALED, TABLE

ROWS = TABLE["S4"]
ten_replicas, one_allocating, five_large = s4.ten_replicas, s4.one_allocating, s4.five_large


globals().update(ROWS.tests)


@pytest.fixture(scope="module")
def scaled_lab(served: Replay) -> Replay:
    """Comes after the rows without scaling."""
    served.serve(ROWS._replace(config=SCALED))
    return served
