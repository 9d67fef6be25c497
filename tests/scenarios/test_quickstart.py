"""Manifests in the formats of the demos of NVIDIA's driver for Dynamic Resource Allocation and of HAMi, in a lab.

consumable_shares/ has those of shares.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios import claim_manifests as manifests
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import GIB, OUT_OF_MEMORY, allocate, delete_claims, devices, seen
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["claims of others"]
SHARES = Path(__file__).parent / "consumable_shares"


@pytest.fixture
def lab(served: Lab) -> Iterator[Lab]:
    yield served
    delete_claims(served)


globals().update(ROWS.tests)


def test_5_two_containers_share_by_time_slices_and_two_by_mps(lab: Lab) -> None:
    manifests.started(lab, 5, "pod")
    slices, mps = ({*seen(lab, "pod", f"{kind}-ctr0"), *seen(lab, "pod", f"{kind}-ctr1")} for kind in ("ts", "mps"))
    assert len(slices) == len(mps) == 1 and slices != mps


def replicas(lab: Lab, name: str, count: int) -> list[str]:
    """The names of so many running pods of a deployment."""
    lab.kubectl("apply", "-f", str(SHARES / f"{name}.yaml"))
    lab.kubectl("scale", f"deployment/{name}", f"--replicas={count}")
    wait_until(lambda: lab.phases(f"app={name}") == {"Running": count}, lambda: str(lab.phases(f"app={name}")))
    return [pod["metadata"]["name"] for pod in lab.pods(f"app={name}")]


def test_shares_of_memory_have_their_limits(lab: Lab) -> None:
    """There are more of them than GPUs."""
    for pod in replicas(lab, "memory-sharing", 5):
        assert allocate(lab, pod, 3 * GIB, 2 * GIB, container="ctr") == ["0", OUT_OF_MEMORY]


def test_claims_that_name_no_capacity_have_whole_gpus(lab: Lab) -> None:
    pods = replicas(lab, "unlimited-sharing", 3)
    assert len({*(uuid for pod in pods for uuid in seen(lab, pod, "ctr"))}) == 3


def test_4_four_containers_have_a_mig_device_each(lab: Lab) -> None:
    assert lab.lamina("mig", "apply", "node-1", "all-balanced").returncode == 0
    wait_until(lambda: len(devices(lab)) == 6, lambda: str(devices(lab)))
    manifests.four_containers_have_a_mig_device_each(lab)
