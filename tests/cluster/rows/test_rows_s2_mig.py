"""S2 on real kubelets: MIG as the post cuts it by labels, and its pod, on two A100."""

from tests.cluster.rows.replay import Replay
from tests.scenarios import mig_labels as mig
from tests.scenarios.rows import TABLE

ROWS = TABLE["S2 MIG"]


globals().update(ROWS.tests)


def test_s2_4_the_remaining_labels_of_the_post(lab: Replay) -> None:
    for name, devices in (("all-2g.10gb", {"2g.10gb": 6}), ("all-7g.40gb", {"7g.40gb": 2})):
        mig.partition(lab, name, devices)
