"""S4 on real kubelets and a real scheduler: 4paradigm's functional test, on its two V100."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import vgpu_scheduler as s4

ten_replicas, one_allocating, five_large = s4.ten_replicas, s4.one_allocating, s4.five_large


@pytest.fixture(scope="module")
def v100(replay: Replay) -> Replay:
    replay.become("V100-PCIE-32GB", 2)
    return replay


@pytest.fixture
def lab(v100: Replay) -> Iterator[Replay]:
    yield v100
    v100.delete_workloads()


test_s4_1_memory_is_the_limit = s4.test_s4_1_memory_is_the_limit
test_s4_2_compute_is_the_limit = s4.test_s4_2_compute_is_the_limit
test_s4_4_out_of_memory_is_cuda_error_2_and_one_line = s4.test_s4_4_out_of_memory_is_cuda_error_2_and_one_line
test_s4_5_the_same_program_runs_within_its_limit = s4.test_s4_5_the_same_program_runs_within_its_limit
test_s4_10_five_replicas_of_16000_mib_need_scaling = s4.test_s4_10_five_replicas_of_16000_mib_need_scaling


@pytest.fixture(scope="module")
def scaled_lab(v100: Replay) -> Replay:
    """Comes after the rows without scaling."""
    v100.become("V100-PCIE-32GB", 2, "devicePlugin:\n  deviceMemoryScaling: 3.0\n")
    return v100


test_s4_10_with_scaling_all_five_run = s4.test_s4_10_with_scaling_all_five_run
test_s4_6_ten_replicas_of_10000_mib_really_use_them = s4.test_s4_6_ten_replicas_of_10000_mib_really_use_them
