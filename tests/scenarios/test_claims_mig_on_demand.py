"""MIG devices that are made for claims in the lab, next to shares and whole GPUs of the same card."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, running
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import OUT_OF_MEMORY, allocate
from tests.waiting import wait_until

QUICKSTART = Path(__file__).parent / "quickstart"
CONFIG = EXAMPLES / "configuration" / "v1alpha1" / "mig-for-claims.yaml"
GIB = 1 << 30


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


def devices(lab: Lab) -> list[str]:
    slices = lab.read("/apis/resource.k8s.io/v1/resourceslices")["items"]
    return [device["name"] for each in slices for device in each["spec"].get("devices", ())]


def instances(lab: Lab) -> list[str]:
    """The MIG instances on the nodes."""
    found = lab.read("/apis/lamina.dev/v1alpha1/inventories")["items"]
    return [
        f"{each['profile']} at {each['start']}"
        for inventory in found
        for gpu in inventory["spec"]["gpus"]
        for each in gpu.get("instances", ())
    ]


def seen(lab: Lab, pod: str, container: str) -> str:
    return lab.kubectl("exec", pod, "-c", container, "--", "nvidia-smi", "-L")


def waits(lab: Lab, pod: str) -> bool:
    """Whether the scheduler found no device for the pod."""
    conditions = lab.read(f"/api/v1/namespaces/default/pods/{pod}")["status"].get("conditions", [])
    return any("cannot allocate all claims" in each.get("message", "") for each in conditions)


def test_mig_devices_are_made_for_a_pod_and_destroyed_after_it(lab: Lab) -> None:
    assert instances(lab) == []
    apply(lab, "dra/mig-on-demand")
    running(lab, "mig-on-demand-claim")
    assert "MIG 1g.5gb" in seen(lab, "mig-on-demand-claim", "one")
    assert "MIG 3g.20gb" in seen(lab, "mig-on-demand-claim", "two")
    assert allocate(lab, "mig-on-demand-claim", "one", 4 * GIB, GIB) == ["0", OUT_OF_MEMORY]
    wait_until(lambda: instances(lab) == ["1g.5gb at 6", "3g.20gb at 0"], lambda: str(instances(lab)))
    assert {"(1g.5gb", "(3g.20gb"} <= set(lab.lamina("pods").stdout.split())
    row = next(line for line in lab.lamina("gpus").stdout.splitlines() if line.startswith("node-1"))
    assert "claims" in row.split() and "24832" in row.split()
    lab.kubectl("delete", "pod", "mig-on-demand-claim", "--grace-period=1")
    wait_until(lambda: instances(lab) == [], lambda: str(instances(lab)))


def test_shares_and_mig_devices_of_one_card_exclude_each_other(lab: Lab) -> None:
    """The other node has a card without MIG, which the share must not take."""
    share = (EXAMPLES / "dra" / "share.yaml").read_text()
    on_a100 = share.replace(
        "          capacity:",
        "          selectors:\n"
        "          - cel: {expression: \"device.attributes['gpu.nvidia.com'].architecture == 'Ampere'\"}\n"
        "          capacity:",
    )
    assert on_a100 != share
    apply(lab, "dra/mig-on-demand")
    running(lab, "mig-on-demand-claim")
    lab.apply(on_a100)
    wait_until(lambda: waits(lab, "shared-claim"), lambda: lab.kubectl("get", "pods", "-o", "yaml"))
    lab.kubectl("delete", "pod", "mig-on-demand-claim", "--grace-period=1")
    running(lab, "shared-claim")
    assert allocate(lab, "shared-claim", "one", 4 * GIB) == [OUT_OF_MEMORY]
    wait_until(lambda: not instances(lab), lambda: "\n".join(instances(lab)))
    lab.kubectl("delete", "resourceclaimtemplate", "two-mig-devices")
    apply(lab, "dra/mig-on-demand")
    wait_until(lambda: waits(lab, "mig-on-demand-claim"), lambda: lab.kubectl("get", "pods", "-o", "yaml"))
    lab.kubectl("delete", "pod", "shared-claim", "--grace-period=1")
    running(lab, "mig-on-demand-claim")


def test_nvidias_manifest_for_four_mig_devices_of_one_gpu(lab: Lab) -> None:
    lab.kubectl("apply", "-f", str(QUICKSTART / "gpu-test4.yaml"))
    running(lab, "pod")
    profiles = [seen(lab, "pod", f"ctr{number}") for number in range(4)]
    for listed, profile in zip(profiles, ("1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"), strict=True):
        assert listed.count("MIG-") == 1 and f"MIG {profile}" in listed
    assert len(set(profiles)) == 4


def test_mps_serves_a_mig_device_that_is_made_for_its_claim(lab: Lab) -> None:
    apply(lab, "dra/mig-mps")
    running(lab, "mig-mps-claim")
    for container in ("one", "two"):
        assert allocate(lab, "mig-mps-claim", container, GIB, GIB) == ["0", OUT_OF_MEMORY], "a context takes the rest"
        assert "MIG 1g.5gb" in seen(lab, "mig-mps-claim", container)
