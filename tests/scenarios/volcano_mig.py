"""Tests of MIG instances for Volcano's pods that run on a lab and on the test cluster."""

import json

import pytest

from tests.scenarios.labs import Cluster, Lab, Object
from tests.seeds import html_manifests, seed
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def mig_pod() -> str:
    """A pod of one vGPU with 3000 MiB in mode mig."""
    return html_manifests(seed("001"))[1]


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

    wait_until(all_run, lambda: lab.kubectl("describe", "pods"))


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
    wait_until(lambda: gpu(lab).get("instances") == [instance], lambda: str(gpu(lab)))
    assert gpu(lab)["mode"] == "mig" and gpu(lab)["migEnabled"]
    fits = ("gpu-load", "--memory-mib", "4000", "--seconds", "0.2")
    lab.kubectl("exec", "mig-pod", "--", *fits)
    assert (
        "out of memory" in lab.kubectl("exec", "mig-pod", "--", "gpu-load", "--memory-mib", "6000", check=False).lower()
    )
    lab.kubectl("delete", "pod", "mig-pod", "--grace-period=1")
    wait_until(lambda: "instances" not in gpu(lab), lambda: str(gpu(lab)))
    assert "mode" not in gpu(lab)
