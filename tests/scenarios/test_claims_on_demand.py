"""MIG devices that are made for claims before their pods are bound, in a lab."""

from collections.abc import Iterator

import pytest

from tests.scenarios import claims_on_demand as on_demand
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import delete_claims
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["claims on demand"]


@pytest.fixture
def lab(served: Lab) -> Iterator[Lab]:
    yield served
    delete_claims(served)
    wait_until(lambda: not on_demand.instances(served), lambda: str(on_demand.instances(served)))


globals().update(ROWS.tests)


def test_another_node_is_tried_where_gpus_refuse_mig(lab: Lab) -> None:
    on_demand.test_another_node_is_tried_where_gpus_refuse_mig(lab)
    events = lab.kubectl("describe", "pod", "mig")
    assert "cannot change the MIG mode of GPU 0 while it is in use by process" in events
