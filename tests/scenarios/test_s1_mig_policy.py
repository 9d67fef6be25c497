"""S1.4, S1.5 and S1.7: which node, mode and instance pods get by policy, on nodes of A100 with 40 GB."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.seeds import html_manifests, seed, with_amount
from tests.waiting import wait_until

CONFIG = (EXAMPLES / "configuration" / "mig-on-demand.yaml").read_text()
MEMORY = "volcano.sh/vgpu-memory"


@pytest.fixture(scope="module")
def two_nodes(start_lab: StartLab) -> Lab:
    """On node-0 idle GPUs are shared, or cut for pods that want that; node-1 is for MIG alone."""
    return start_lab("policy", "--nodes", "2", "--gpus-per-node", "1", "--gpu", "A100-SXM4-40GB", config=CONFIG)


@pytest.fixture
def lab(two_nodes: Lab) -> Iterator[Lab]:
    yield two_nodes
    two_nodes.delete_workloads()
    wait_until(lambda: instances(two_nodes) == [], lambda: f"instances stay: {instances(two_nodes)}")


@pytest.fixture(scope="module")
def mig_pod() -> str:
    """A pod of one vGPU with 3000 MiB in mode mig."""
    return html_manifests(seed("001"))[1]


def gpu(lab: Lab, node: str) -> dict[str, Any]:
    [found] = json.loads(lab.kubectl("get", f"inventories/{node}", "-o", "json"))["spec"]["gpus"]
    return dict(found)


def instances(lab: Lab) -> list[str]:
    return [each["profile"] for node in ("node-0", "node-1") for each in gpu(lab, node).get("instances", ())]


def grant(lab: Lab, pod: str) -> dict[str, Any]:
    grants = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    [spec] = [each["spec"] for each in grants if each["spec"]["pod"] == pod]
    return dict(spec)


def shares(lab: Lab, pod: str) -> list[dict[str, Any]]:
    return [share for container in grant(lab, pod)["containers"] for share in container["shares"]]


def runs(lab: Lab, *pods: str) -> None:
    def all_run() -> bool:
        phases = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in lab.pods()}
        return {phases.get(pod) for pod in pods} == {"Running"}

    wait_until(all_run, lambda: lab.kubectl("describe", "pods"))


def named(manifest: str, name: str, **changes: str) -> str:
    manifest = re.sub(r"name: (mig|hami)-pod", f"name: {name}", manifest)
    for old, new in changes.items():
        manifest = manifest.replace(old, new)
    return manifest


def test_s1_4_without_an_annotation_the_mode_follows_from_fit_and_policy_and_is_reported(
    lab: Lab, mig_pod: str
) -> None:
    plain = re.sub(r"  annotations:\n.*\n", "", mig_pod)
    for name, node in (("on-both", "node-0"), ("on-mig", "node-1")):
        lab.apply(named(plain, name).replace("spec:\n", f"spec:\n  nodeSelector: {{kubernetes.io/hostname: {node}}}\n"))
    runs(lab, "on-both", "on-mig")
    assert [share["mode"] for pod in ("on-both", "on-mig") for share in shares(lab, pod)] == ["quota", "mig"]

    def reported() -> dict[str, str]:
        pods = {pod["metadata"]["name"]: pod["metadata"].get("annotations", {}) for pod in lab.pods()}
        return {name: noted["lamina.dev/mode"] for name, noted in pods.items() if "lamina.dev/mode" in noted}

    start = shares(lab, "on-mig")[0]["mig"]["start"]
    expected = {
        "on-both": "cuda-container: quota: the node prefers this mode",
        "on-mig": f"cuda-container: mig, 1g.5gb at slice {start}: the node allows no other mode",
    }
    wait_until(lambda: reported() == expected, lambda: str(reported()))


def test_s1_5_each_pod_lands_on_a_node_that_can_serve_it(lab: Lab, mig_pod: str) -> None:
    shared, partitioned = html_manifests(seed("001"))[0], mig_pod
    lab.apply(named(shared, "shared"))
    runs(lab, "shared")
    lab.apply(named(partitioned, "partitioned"))
    lab.apply(named(shared, "shared-too"))
    runs(lab, "partitioned", "shared-too")
    where = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in lab.pods()}
    assert where == {"shared": "node-0", "partitioned": "node-1", "shared-too": "node-0"}
    [share] = shares(lab, "shared-too")
    assert share["mode"] == "quota" and share["memoryMiB"] == 3000


def test_s1_7_instances_are_a_part_of_one_geometry_of_the_configuration(lab: Lab, mig_pod: str) -> None:
    """The second geometry has three 2g.10gb and one 1g.5gb."""
    chosen = mig_pod.replace("spec:\n", "spec:\n  nodeSelector: {kubernetes.io/hostname: node-1}\n")
    for name in ("a", "b", "c"):
        lab.apply(named(with_amount(chosen, MEMORY, 9000), name))
    lab.apply(named(chosen, "d"))
    runs(lab, "a", "b", "c", "d")
    all_there = ["1g.5gb", "2g.10gb", "2g.10gb", "2g.10gb"]
    wait_until(lambda: sorted(instances(lab)) == all_there, lambda: f"instances are {instances(lab)}")
    lab.apply(named(chosen, "e"))

    def waits() -> bool:
        return "no place on the GPU for a MIG instance of 1g.5gb, or a larger one" in lab.lamina("why", "e").stdout

    wait_until(waits, lambda: lab.lamina("why", "e").stdout)
    lab.apply(named(with_amount(chosen, MEMORY, 20000), "f"))

    def waits_for_ever() -> bool:
        reported = lab.lamina("why", "f").stdout
        return "needs 20000 MiB; the largest MIG profile, 3g.20gb, has 19968 MiB" in reported

    wait_until(waits_for_ever, lambda: lab.lamina("why", "f").stdout)


def test_the_examples_get_instances_and_cces_pod_an_unpartitioned_gpu(lab: Lab) -> None:
    for name in ("mig-on-demand.yaml", "mig-on-demand-volcano.yaml"):
        lab.apply((EXAMPLES / name).read_text())
    one_gpu = (EXAMPLES / "cce.yaml").read_text().replace('"2"', '"1"')
    lab.apply(one_gpu.replace("spec:\n", "spec:\n  nodeSelector: {kubernetes.io/hostname: node-1}\n"))
    runs(lab, "mig-on-demand", "mig-on-demand-volcano")
    profiles = {name: shares(lab, name)[0]["mig"]["profile"] for name in ("mig-on-demand", "mig-on-demand-volcano")}
    assert profiles == {"mig-on-demand": "2g.10gb", "mig-on-demand-volcano": "1g.5gb"}

    def waits() -> bool:
        return "the pod accepts the mode quota; this node allows mig" in lab.lamina("why", "cce-split").stdout

    wait_until(waits, lambda: lab.lamina("why", "cce-split").stdout)
