"""S1.3 to S1.5: MIG instances as Volcano's pods ask for them, on A100 with 40 GB that may be shared or cut."""

import json
from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Cluster, Lab, Object, wait_for
from tests.scenarios.test_restarts import kill
from tests.seeds import html_manifests, seed

CONFIG = """
nvidia: {modes: [quota, mig]}
nodeconfig:
  - {name: node-1, operatingmode: hami-core}
"""


@pytest.fixture(scope="module")
def a100_lab(start_lab: StartLab) -> Lab:
    return start_lab("cut", "--gpu", "A100-SXM4-40GB", "--nodes", "2", "--gpus-per-node", "1", config=CONFIG)


@pytest.fixture
def lab(a100_lab: Lab) -> Iterator[Lab]:
    yield a100_lab
    a100_lab.delete_workloads()
    wait_for(lambda: gpu(a100_lab).get("instances") is None, lambda: str(gpu(a100_lab)))


@pytest.fixture(scope="module")
def mig_pod() -> str:
    """A pod of one vGPU with 3000 MiB in mode mig."""
    return html_manifests(seed("001"))[1]


@pytest.fixture(scope="module")
def hami_core() -> str:
    return html_manifests(seed("001"))[0]


def gpu(lab: Cluster, node: str = "") -> Object:
    """The node's GPU as its inventory tells it."""
    [found] = json.loads(lab.kubectl("get", "inventory", node or lab.node, "-o", "json"))["spec"]["gpus"]
    return dict(found)


def shares(lab: Lab) -> dict[str, Object]:
    """The one share of each pod, with its node."""
    grants = [each["spec"] for each in json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]]
    return {each["pod"]: each["containers"][0]["shares"][0] | {"node": each["node"]} for each in grants}


def runs(lab: Lab, manifest: str, *pods: str) -> None:
    lab.apply(manifest)

    def all_run() -> bool:
        phases = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in lab.pods()}
        return all(phases.get(pod) == "Running" for pod in pods)

    wait_for(all_run, lambda: lab.kubectl("describe", "pods"))


def listed(lab: Lab, pod: str) -> list[str]:
    """What nvidia-smi lists in a pod, without UUIDs."""
    lines = lab.kubectl("exec", pod, "--", "nvidia-smi", "-L").splitlines()
    return [" ".join(line.partition("(UUID")[0].split()) for line in lines]


def test_s1_3_an_instance_is_made_for_the_pod_and_goes_with_it(lab: Lab, mig_pod: str) -> None:
    runs(lab, mig_pod, "mig-pod")
    share = shares(lab)["mig-pod"]
    assert (share["mode"], share["mig"]["profile"], share["node"]) == ("mig", "1g.5gb", lab.node)
    assert listed(lab, "mig-pod") == ["GPU 0: NVIDIA A100-SXM4-40GB", "MIG 1g.5gb Device 0:"]
    instance = share["mig"] | {"made": True}
    wait_for(lambda: gpu(lab).get("instances") == [instance], lambda: str(gpu(lab)))
    assert gpu(lab)["mode"] == "mig" and gpu(lab)["migEnabled"]
    fits = ("gpu-load", "--memory-mib", "4000", "--seconds", "0.2")
    lab.kubectl("exec", "mig-pod", "--", *fits)
    assert (
        "out of memory" in lab.kubectl("exec", "mig-pod", "--", "gpu-load", "--memory-mib", "6000", check=False).lower()
    )
    lab.kubectl("delete", "pod", "mig-pod", "--grace-period=1")
    wait_for(lambda: "instances" not in gpu(lab), lambda: str(gpu(lab)))
    assert "mode" not in gpu(lab)


def test_s1_3_each_pod_has_its_own_and_the_idle_gpu_can_be_shared_by_limits_again(
    lab: Lab, mig_pod: str, hami_core: str
) -> None:
    several = [mig_pod.replace("mig-pod", f"mig-{number}") for number in range(3)]
    runs(lab, "---\n".join(several), "mig-0", "mig-1", "mig-2")
    assert len({share["mig"]["start"] for share in shares(lab).values()}) == 3
    assert [len(listed(lab, f"mig-{number}")) for number in range(3)] == [2, 2, 2]
    lab.delete_workloads()
    wait_for(lambda: "instances" not in gpu(lab), lambda: str(gpu(lab)))
    bound = hami_core.replace("spec:\n", "spec:\n  nodeSelector: {kubernetes.io/hostname: node-0}\n", 1)
    runs(lab, bound, "hami-pod")
    assert listed(lab, "hami-pod") == ["GPU 0: NVIDIA A100-SXM4-40GB"]
    wait_for(lambda: not gpu(lab).get("migEnabled"), lambda: str(gpu(lab)))
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
    wait_for(lambda: "instances" not in gpu(lab), lambda: str(gpu(lab)))
