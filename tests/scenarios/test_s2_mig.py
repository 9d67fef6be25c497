"""S2.4 to S2.6: MIG in the post's words, its labels and its pod, on a node of two A100 with 40 GB."""

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def lab(start_lab: StartLab) -> Lab:
    rows = TABLE["S2 MIG"]
    return start_lab("mig", *rows.options, config=rows.config)


globals().update(TABLE["S2 MIG"].tests)


def test_s2_4_an_unknown_name_is_refused_with_those_there_are(lab: Lab) -> None:
    lab.kubectl("label", "nodes", lab.node, "nvidia.com/mig.config=all-3g.40gb", "--overwrite")

    def refused() -> bool:
        return "have no MIG configuration all-3g.40gb" in lab.kubectl("get", "events", "-A")

    wait_until(refused, lambda: lab.kubectl("describe", "node", lab.node))
