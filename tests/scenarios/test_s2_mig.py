"""S2.4 to S2.6: MIG in the post's words, its labels and its pod, on a node of two A100 with 40 GB."""

import pytest

from tests.scenarios import mig_labels
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def lab(start_lab: StartLab) -> Lab:
    config = (EXAMPLES / "configuration" / "mig.yaml").read_text()
    return start_lab("mig", "--gpu", "A100-PCIE-40GB", config=config)


test_s2_4_labels_of_the_post_make_its_instances = mig_labels.test_s2_4_labels_of_the_post_make_its_instances
test_s2_5_and_s2_6_a_pod_sees_its_gpu_and_its_one_device = (
    mig_labels.test_s2_5_and_s2_6_a_pod_sees_its_gpu_and_its_one_device
)
test_s2_4_instances_are_listed_and_a_device_in_use_is_not_taken_away = (
    mig_labels.test_s2_4_instances_are_listed_and_a_device_in_use_is_not_taken_away
)


def test_s2_4_an_unknown_name_is_refused_with_those_there_are(lab: Lab) -> None:
    lab.kubectl("label", "nodes", lab.node, "nvidia.com/mig.config=all-3g.40gb", "--overwrite")

    def refused() -> bool:
        return "have no MIG configuration all-3g.40gb" in lab.kubectl("get", "events", "-A")

    wait_until(refused, lambda: lab.kubectl("describe", "node", lab.node))
