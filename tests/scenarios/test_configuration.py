"""The configuration of a running lab is its ConfigMap, as on a cluster."""

import json

from tests.scenarios.conftest import StartLab
from tests.waiting import wait_until


def test_a_change_of_the_configmap_reaches_agents_and_placement(start_lab: StartLab) -> None:
    lab = start_lab("changes", "--gpus-per-node", "1", config="hami: {deviceSplitCount: 2}")
    offered = ("get", "nodes", "-o", "jsonpath={.items[*].status.allocatable.nvidia\\.com/gpu}")
    wait_until(lambda: lab.kubectl(*offered) == "2", lambda: lab.kubectl(*offered))
    change = {"data": {"lamina.yaml": "hami: {deviceSplitCount: 3, deviceMemoryScaling: 2}"}}
    patch = ("patch", "configmap", "lamina", "-n", "lamina-system", "--type=merge", "-p", json.dumps(change))
    lab.kubectl(*patch)
    wait_until(lambda: lab.kubectl(*offered) == "3", lambda: lab.kubectl(*offered))
    (gpu,) = json.loads(lab.kubectl("get", "inventories", "-o", "json"))["items"][0]["spec"]["gpus"]
    assert (gpu["slots"], gpu["capacityMiB"]) == (3, 2 * gpu["memoryMiB"])
