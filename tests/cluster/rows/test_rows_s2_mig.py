"""S2 on real kubelets: MIG as the post cuts it by labels, and its pod, on two A100."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import mig_labels as mig
from tests.scenarios.examples import EXAMPLES


@pytest.fixture(scope="module")
def a100(replay: Replay) -> Replay:
    replay.become("A100-PCIE-40GB", 2, (EXAMPLES / "configuration" / "mig.yaml").read_text())
    return replay


@pytest.fixture
def lab(a100: Replay) -> Iterator[Replay]:
    yield a100
    a100.delete_workloads()


test_s2_4_labels_of_the_post_make_its_instances = mig.test_s2_4_labels_of_the_post_make_its_instances
test_s2_5_and_s2_6_a_pod_sees_its_gpu_and_its_one_device = mig.test_s2_5_and_s2_6_a_pod_sees_its_gpu_and_its_one_device
test_s2_4_a_device_in_use_is_not_taken_away = mig.test_s2_4_instances_are_listed_and_a_device_in_use_is_not_taken_away


def test_s2_4_the_remaining_labels_of_the_post(lab: Replay) -> None:
    for name, devices in (("all-2g.10gb", {"2g.10gb": 6}), ("all-7g.40gb", {"7g.40gb": 2})):
        mig.partition(lab, name, devices)
