"""S2 on real kubelets: time-slicing as the document about GPU sharing on OpenShift sets it up, on two A100."""

from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import time_slicing as slicing

eleven = slicing.eleven


@pytest.fixture(scope="module")
def a100(replay: Replay) -> Replay:
    replay.become("A100-PCIE-40GB", 2)
    slicing.slice_gpus(replay)
    return replay


@pytest.fixture
def lab(a100: Replay) -> Iterator[Replay]:
    yield a100
    a100.delete_workloads()


test_s2_1_the_node_offers_gpus_times_replicas = slicing.test_s2_1_the_node_offers_gpus_times_replicas
test_s2_1_the_labels_say_that_gpus_are_shared = slicing.test_s2_1_the_labels_say_that_gpus_are_shared
test_s2_1_the_documents_pod_sees_its_gpu = slicing.test_s2_1_the_documents_pod_sees_its_gpu
test_s2_2_eight_of_eleven_run = slicing.test_s2_2_eight_of_eleven_run
