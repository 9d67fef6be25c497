"""S1 on real kubelets and a real scheduler: Volcano's document, on eight T4 and on an A100 that may be cut."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import volcano as s1
from tests.scenarios import volcano_mig as mig
from tests.waiting import wait_until

hami_core, mig_pod = s1.hami_core, mig.mig_pod


def test_s1_1_allocatable_has_the_sums_of_the_node(replay: Replay) -> None:
    replay.become("T4", 8)
    s1.sums_of_eight(replay)


@pytest.fixture(scope="module")
def a100(replay: Replay) -> Replay:
    replay.become("A100-SXM4-40GB", 1, "nvidia: {modes: [quota, mig]}\n")
    return replay


@pytest.fixture
def lab(a100: Replay) -> Iterator[Replay]:
    yield a100
    a100.delete_workloads()
    wait_until(lambda: "instances" not in mig.gpu(a100), lambda: str(mig.gpu(a100)))


test_s1_2_a_pod_gets_its_memory_and_compute = s1.test_s1_2_a_pod_gets_its_memory_and_compute
test_s1_2_the_pod_carries_what_volcanos_tools_read = s1.test_s1_2_the_pod_carries_what_volcanos_tools_read
test_s1_3_an_instance_is_made_for_the_pod = mig.test_s1_3_an_instance_is_made_for_the_pod_and_goes_with_it
test_s1_8_metrics_have_use_and_limits = s1.test_s1_8_metrics_have_use_and_limits
