"""Odd objects in a lab, with its API server and kubelet, while the controller and the agent are killed in between."""

import asyncio
from collections import Counter

from tests.hostile_objects.objects import FIRST_SEED
from tests.hostile_objects.planting import plant
from tests.hostile_objects.pods import NAMESPACE
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.scenarios.processes import kill, process_of
from tests.waiting import wait_until

COUNT = 60
"""Objects in each of the rounds, between which a part is killed."""
PARTS = ("controller", "agent")
HONEST = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: honest}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ubuntu:22.04
    command: [sleep, "86400"]
    resources: {limits: {nvidia.com/gpumem: 1000}}
"""


def create(lab: Lab, manifest: str) -> None:
    """Create a pod, as soon as the controller that has just started answers."""
    words = ("create", "-f", "-")
    wait_until(
        lambda: "created" in lab.kubectl(*words, stdin=manifest, check=False),
        lambda: lab.kubectl(*words, "--dry-run=server", stdin=manifest, check=False),
    )


def kinds_set_aside(lab: Lab) -> set[str]:
    lines = lab.metrics("controller").splitlines()
    return {line.split('"')[1] for line in lines if line.startswith("lamina_objects_set_aside_total{")}


def test_odd_objects_and_kills_stop_no_honest_pod(start_lab: StartLab) -> None:
    lab = start_lab("odd", "--gpu", "V100-PCIE-32GB")
    lab.kubectl("create", "namespace", NAMESPACE)
    taken: Counter[str] = Counter()
    for number, part in enumerate(PARTS):
        taken += asyncio.run(plant(lab.kubeconfig, FIRST_SEED + 2 * number, COUNT))
        kill(lab, "lamina", part)
        before = [process_of(lab, "lamina", each) for each in PARTS]
        taken += asyncio.run(plant(lab.kubeconfig, FIRST_SEED + 2 * number + 1, COUNT))
        create(lab, HONEST.replace("NAME", f"honest-{number}"))
        lab.settled("app=honest", {"Running": number + 1})
        assert [process_of(lab, "lamina", each) for each in PARTS] == before, "a part has ended by itself"
    assert taken["pods"] and taken["inventories"] and taken["grants"], taken
    found = kinds_set_aside(lab)
    assert "inventories" in found and "loop" not in found, found
