"""Commands about GPUs on a lab, as people start them."""

import json

from tests.scenarios.labs import Lab, Object
from tests.waiting import wait_until

POD = """
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers:
  - name: main
    image: cuda
    command: [sleep, "86400"]
    resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 1000, nvidia.com/gpucores: 30}}
"""


def gpus(lab: Lab) -> list[Object]:
    rows: list[Object] = json.loads(lab.lamina("gpus", "-o", "json", "--sort", "granted").stdout)
    return rows


def test_gpus_have_what_is_granted_and_used(lab: Lab) -> None:
    lab.apply(POD)
    wait_until(lambda: lab.phases() == {"Running": 1}, lambda: lab.kubectl("describe", "pods"))
    first, second = gpus(lab)
    assert (first["memoryGrantedMib"], first["computeGrantedPercent"], first["pods"]) == (1000, 30, ["default/one"])
    assert second["pods"] == [] and second["memoryFreeMib"] == second["memoryMib"]
    assert all(isinstance(row["memoryUsedMib"], int) for row in (first, second))


def test_kubectl_shows_what_is_free(lab: Lab) -> None:
    lab.apply(POD)

    def columns() -> list[list[str]]:
        return [line.split() for line in lab.kubectl("get", "inventories").splitlines()]

    def shown() -> bool:
        return columns()[1][-4:-1] == ["64536", "32768", "170"]

    wait_until(shown, lambda: lab.kubectl("get", "inventories", "-o", "yaml"))
    assert columns()[0][-5:] == ["FREE", "LARGEST", "FREE", "CORES", "AGE"]
