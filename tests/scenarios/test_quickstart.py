"""Manifests in the formats of the demos of NVIDIA's driver for Dynamic Resource Allocation, on Lamina's.

quickstart/ has one for each of its files gpu-test1 to gpu-test6, and consumable_shares/ those of shares.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import running
from tests.scenarios.labs import Lab
from tests.scenarios.resource_claims import OUT_OF_MEMORY, allocate
from tests.waiting import wait_until

FOLDER, SHARES = Path(__file__).parent / "quickstart", Path(__file__).parent / "consumable_shares"
GIB = 1 << 30
MACHINES = """
dra: true
nodes:
- name: node-0
  gpus: [{model: V100-SXM2-32GB, count: 2}]
- name: node-1
  gpus: [{model: A100-SXM4-40GB, count: 1}]
"""


@pytest.fixture(scope="module")
def quickstart_lab(start_lab: StartLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    machines = tmp_path_factory.mktemp("quick") / "machines.yaml"
    machines.write_text(MACHINES)
    lab = start_lab("quick", "--machines", str(machines))
    wait_until(lambda: len(devices(lab)) == 3, lambda: str(devices(lab)))
    return lab


@pytest.fixture
def lab(quickstart_lab: Lab) -> Iterator[Lab]:
    yield quickstart_lab
    quickstart_lab.kubectl("delete", "resourceclaimtemplates", "--all")
    quickstart_lab.delete_workloads()
    quickstart_lab.kubectl("delete", "resourceclaims", "--all")
    wait_until(lambda: not claims(quickstart_lab), lambda: str(claims(quickstart_lab)))


def devices(lab: Lab) -> list[str]:
    slices = lab.read("/apis/resource.k8s.io/v1/resourceslices")["items"]
    return [device["name"] for each in slices for device in each["spec"]["devices"]]


def claims(lab: Lab) -> list[str]:
    found = lab.read("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims")["items"]
    return [each["metadata"]["name"] for each in found]


def started(lab: Lab, number: int, *pods: str) -> None:
    lab.kubectl("apply", "-f", str(FOLDER / f"gpu-test{number}.yaml"))
    for pod in pods:
        running(lab, pod)


def seen(lab: Lab, pod: str, container: str = "ctr0") -> str:
    """The devices of a container."""
    return lab.kubectl("exec", pod, "-c", container, "--", "nvidia-smi", "-L")


def test_1_two_pods_get_two_gpus(lab: Lab) -> None:
    started(lab, 1, "pod1", "pod2")
    assert seen(lab, "pod1").count("GPU-") == seen(lab, "pod2").count("GPU-") == 1
    assert seen(lab, "pod1") != seen(lab, "pod2")


def test_2_two_containers_share_a_gpu(lab: Lab) -> None:
    started(lab, 2, "pod")
    assert seen(lab, "pod") == seen(lab, "pod", "ctr1")
    assert len(claims(lab)) == 1


def test_3_two_pods_share_a_gpu(lab: Lab) -> None:
    started(lab, 3, "pod1", "pod2")
    assert seen(lab, "pod1") == seen(lab, "pod2")


def test_5_two_containers_share_by_time_slices_and_two_by_mps(lab: Lab) -> None:
    started(lab, 5, "pod")
    slices, mps = ({seen(lab, "pod", f"{kind}-ctr{number}") for number in range(2)} for kind in ("ts", "mps"))
    assert len(slices) == len(mps) == 1 and slices != mps


def test_6_a_gpu_is_selected_by_its_name_and_index(lab: Lab) -> None:
    started(lab, 6, "pod")
    assert "A100" in seen(lab, "pod")


def replicas(lab: Lab, name: str, count: int) -> list[str]:
    """The names of so many running pods of a deployment."""
    lab.kubectl("apply", "-f", str(SHARES / f"{name}.yaml"))
    lab.kubectl("scale", f"deployment/{name}", f"--replicas={count}")
    wait_until(lambda: lab.phases(f"app={name}") == {"Running": count}, lambda: str(lab.phases(f"app={name}")))
    return [pod["metadata"]["name"] for pod in lab.pods(f"app={name}")]


def test_shares_of_memory_have_their_limits(lab: Lab) -> None:
    """There are more of them than GPUs."""
    for pod in replicas(lab, "memory-sharing", 5):
        assert allocate(lab, pod, "ctr", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_claims_that_name_no_capacity_have_whole_gpus(lab: Lab) -> None:
    pods = replicas(lab, "unlimited-sharing", 3)
    assert len({seen(lab, pod, "ctr") for pod in pods}) == 3


def test_4_four_containers_have_a_mig_device_each(lab: Lab) -> None:
    assert lab.lamina("mig", "apply", "node-1", "all-balanced").returncode == 0
    wait_until(lambda: len(devices(lab)) == 6, lambda: str(devices(lab)))
    started(lab, 4, "pod")
    profiles = [seen(lab, "pod", f"ctr{number}") for number in range(4)]
    for listed, profile in zip(profiles, ("1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"), strict=True):
        assert listed.count("MIG-") == 1 and f"MIG {profile}" in listed
    assert len(set(profiles)) == 4
