"""S1.3 to S1.5: MIG instances as Volcano's pods ask for them, on A100 with 40 GB that may be shared or cut."""

from collections.abc import Iterator

import pytest

from tests.scenarios import volcano_mig
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.scenarios.processes import kill
from tests.scenarios.rows import TABLE
from tests.scenarios.volcano_mig import gpu, listed, runs, shares
from tests.seeds import html_manifests, seed
from tests.waiting import wait_until

CONFIG = """
sharing: {modes: [quota, mig]}
nodeconfig:
  - {name: node-1, operatingmode: hami-core}
"""


@pytest.fixture(scope="module")
def a100_lab(start_lab: StartLab) -> Lab:
    return start_lab("partition", "--gpu", "A100-SXM4-40GB", "--nodes", "2", "--gpus-per-node", "1", config=CONFIG)


@pytest.fixture
def lab(a100_lab: Lab) -> Iterator[Lab]:
    yield a100_lab
    a100_lab.delete_workloads()
    wait_until(lambda: gpu(a100_lab).get("instances") is None, lambda: str(gpu(a100_lab)))


mig_pod = volcano_mig.mig_pod


@pytest.fixture(scope="module")
def hami_core() -> str:
    return html_manifests(seed("001"))[0]


globals().update(TABLE["S1 MIG"].tests)


def test_s1_3_each_pod_has_its_own_and_the_idle_gpu_can_be_shared_by_limits_again(
    lab: Lab, mig_pod: str, hami_core: str
) -> None:
    several = [mig_pod.replace("mig-pod", f"mig-{number}") for number in range(3)]
    runs(lab, "---\n".join(several), "mig-0", "mig-1", "mig-2")
    assert len({share["mig"]["start"] for share in shares(lab).values()}) == 3
    assert [len(listed(lab, f"mig-{number}")) for number in range(3)] == [2, 2, 2]
    lab.delete_workloads()
    wait_until(lambda: "instances" not in gpu(lab), lambda: str(gpu(lab)))
    bound = hami_core.replace("spec:\n", "spec:\n  nodeSelector: {kubernetes.io/hostname: node-0}\n", 1)
    runs(lab, bound, "hami-pod")
    assert listed(lab, "hami-pod") == ["GPU 0: NVIDIA A100-SXM4-40GB"]
    wait_until(lambda: not gpu(lab).get("migEnabled"), lambda: str(gpu(lab)))
    assert gpu(lab)["mode"] == "quota"


def test_s1_5_each_pod_lands_on_a_node_that_serves_its_mode(lab: Lab, mig_pod: str, hami_core: str) -> None:
    runs(lab, mig_pod, "mig-pod")
    runs(lab, hami_core, "hami-pod")
    found = shares(lab)
    assert (found["mig-pod"]["node"], found["mig-pod"]["mode"]) == ("node-0", "mig")
    assert (found["hami-pod"]["node"], found["hami-pod"]["mode"]) == ("node-1", "quota")


def test_s1_3_an_instance_goes_too_if_its_agent_was_killed_meanwhile(lab: Lab, mig_pod: str) -> None:
    runs(lab, mig_pod, "mig-pod")
    kill(lab, "lamina", "agent", "node-0")
    lab.kubectl("delete", "pod", "mig-pod", "--grace-period=1")
    wait_until(lambda: "instances" not in gpu(lab), lambda: str(gpu(lab)))
