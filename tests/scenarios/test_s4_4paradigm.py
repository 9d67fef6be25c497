"""S4: the functional test of 4paradigm's k8s-vgpu-scheduler, with the manifests of that document as they stand."""

import json

import pytest

from tests.scenarios import vgpu_scheduler
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.scenarios.rows import SCALED, TABLE
from tests.scenarios.vgpu_scheduler import APP
from tests.seeds import with_amount, with_replicas
from tests.waiting import wait_until

ten_replicas = vgpu_scheduler.ten_replicas
one_allocating = vgpu_scheduler.one_allocating
five_large = vgpu_scheduler.five_large
globals().update(TABLE["S4"].tests)


def test_s4_1_a_waiting_pod_runs_when_one_that_runs_is_deleted(lab: Lab, ten_replicas: str) -> None:
    lab.apply(with_replicas(ten_replicas, 7))
    lab.settled(APP, {"Pending": 1, "Running": 6})
    lab.kubectl("scale", "deployment/vgpu-test", "--replicas=6")
    lab.settled(APP, {"Running": 6})
    lab.kubectl("delete", "pod", lab.running_pod(APP), "--grace-period=1", "--wait=false")
    lab.settled(APP, {"Running": 6})


def test_s4_3_at_most_ten_tasks_on_a_gpu(lab: Lab, ten_replicas: str) -> None:
    manifest = with_amount(with_amount(ten_replicas, "nvidia.com/gpumem", 100), "nvidia.com/gpucores", 1)
    lab.apply(with_replicas(manifest, 21))
    lab.settled(APP, {"Pending": 1, "Running": 20})
    grants = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    gpus = [share["gpu"] for grant in grants for each in grant["spec"]["containers"] for share in each["shares"]]
    assert sorted(gpus.count(gpu) for gpu in set(gpus)) == [10, 10]


@pytest.fixture(scope="module")
def scaled_lab(start_lab: StartLab) -> Lab:
    return start_lab("scaled", *TABLE["S4"].options, config=SCALED)


def test_s4_9_every_resource_name_and_default_of_the_document(start_lab: StartLab) -> None:
    lab = start_lab("names", "--gpu", "V100-PCIE-32GB", config=CHART)
    lab.apply(POD.format(name="defaults", limits="example.com/vgpu: 1"))
    lab.apply(POD.format(name="percentage", limits="example.com/vgpu: 1, example.com/percent: 25"))
    lab.apply(POD.format(name="all", limits="example.com/mem: 700, example.com/cores: 20, example.com/priority: 1"))
    wait_until(lambda: lab.phases() == {"Running": 3}, lambda: lab.kubectl("get", "events"))
    shares = {}
    for grant in json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]:
        container = grant["spec"]["containers"][0]
        share = container["shares"][0]
        shares[grant["spec"]["pod"]] = (share["memoryMiB"], share["cores"], container.get("priority"))
    assert shares == {"defaults": (5000, 5, None), "percentage": (8192, 5, None), "all": (700, 20, 1)}
    assert json.loads(lab.kubectl("get", "node", "-o", "json"))["items"][0]["status"]["allocatable"][
        "example.com/vgpu"
    ] == str(2 * 3)


CHART = """
devicePlugin:
  deviceSplitCount: 3
  deviceMemoryScaling: 1
  migStrategy: none
  disablecorelimit: "false"
scheduler:
  defaultMem: 5000
  defaultCores: 5
resourceName: example.com/vgpu
resourceMem: example.com/mem
resourceMemPercentage: example.com/percent
resourceCores: example.com/cores
resourcePriority: example.com/priority
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - name: main
    image: ubuntu:18.04
    command: [sleep, "86400"]
    resources: {{limits: {{{limits}}}}}
"""


def test_s4_11_only_nodes_labelled_gpu_on_are_used(start_lab: StartLab, ten_replicas: str) -> None:
    lab = start_lab("labelled", "--nodes", "2", config='nodes: {selector: {gpu: "on"}}\n')
    lab.apply(with_replicas(ten_replicas, 2))
    lab.settled(APP, {"Pending": 2})
    lab.kubectl("label", "node", "node-1", "gpu=on")
    lab.settled(APP, {"Running": 2})
    assert {pod["spec"]["nodeName"] for pod in lab.pods(APP)} == {"node-1"}
