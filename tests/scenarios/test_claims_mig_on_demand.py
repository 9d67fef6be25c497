"""MIG devices that are made for claims in the lab, next to shares and whole GPUs of the same card."""

from collections.abc import Iterator

import pytest

from tests.scenarios.claim_manifests import four_containers_have_a_mig_device_each
from tests.scenarios.claims_on_demand import instances
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, running
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import GIB, OUT_OF_MEMORY, allocate, devices, listed
from tests.waiting import wait_until

CONFIG = EXAMPLES / "configuration" / "v1alpha1" / "mig-for-claims.yaml"


@pytest.fixture(scope="module")
def mig_lab(start_lab: StartLab) -> Lab:
    lab = start_lab("migclaims", "--machines", str(EXAMPLES / "lab-dra-mig.yaml"), "--config", str(CONFIG))
    wait_until(lambda: "gpu-0-mig-3g20gb-9-4" in devices(lab), lambda: str(devices(lab)))
    return lab


@pytest.fixture
def lab(mig_lab: Lab) -> Iterator[Lab]:
    yield mig_lab
    mig_lab.kubectl("delete", "resourceclaimtemplates", "--all")
    mig_lab.delete_workloads()
    wait_until(lambda: not instances(mig_lab), lambda: "\n".join(instances(mig_lab)))


def test_mig_devices_are_made_for_a_pod_and_destroyed_after_it(lab: Lab) -> None:
    assert instances(lab) == []
    apply(lab, "dra/mig-on-demand")
    running(lab, "mig-on-demand-claim")
    assert "MIG 1g.5gb" in listed(lab, "mig-on-demand-claim", "one")
    assert "MIG 3g.20gb" in listed(lab, "mig-on-demand-claim", "two")
    assert allocate(lab, "mig-on-demand-claim", 4 * GIB, GIB, container="one") == ["0", OUT_OF_MEMORY]
    wait_until(lambda: instances(lab) == ["1g.5gb at 6", "3g.20gb at 0"], lambda: str(instances(lab)))
    assert {"(1g.5gb", "(3g.20gb"} <= set(lab.lamina("pods").stdout.split())
    row = next(line for line in lab.lamina("gpus").stdout.splitlines() if line.startswith("node-1"))
    assert "claims" in row.split() and "24832" in row.split()
    lab.kubectl("delete", "pod", "mig-on-demand-claim", "--grace-period=1")
    wait_until(lambda: instances(lab) == [], lambda: str(instances(lab)))


def test_nvidias_manifest_for_four_mig_devices_of_one_gpu(lab: Lab) -> None:
    four_containers_have_a_mig_device_each(lab)


def test_mps_serves_a_mig_device_that_is_made_for_its_claim(lab: Lab) -> None:
    apply(lab, "dra/mig-mps")
    running(lab, "mig-mps-claim")
    for container in ("one", "two"):
        assert allocate(lab, "mig-mps-claim", GIB, GIB, container=container) == ["0", OUT_OF_MEMORY], (
            "a context takes the rest"
        )
        assert "MIG 1g.5gb" in listed(lab, "mig-mps-claim", container)
