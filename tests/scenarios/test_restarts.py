"""Parts of the product that are killed under load come back without anyone's help."""

from tests.scenarios.labs import Lab
from tests.scenarios.processes import kill
from tests.waiting import wait_until

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: restarts}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ubuntu:22.04
    command: [sleep, "86400"]
    resources: {limits: {nvidia.com/gpumem: 1000}}
---
"""


def pods(first: int, count: int) -> str:
    return "".join(POD.replace("NAME", f"r-{number}") for number in range(first, first + count))


def test_pods_are_admitted_placed_and_freed_after_the_controller_was_killed(lab: Lab) -> None:
    lab.apply(pods(0, 20))
    lab.settled("app=restarts", {"Running": 20})
    kill(lab, "lamina", "controller")
    wait_until(lambda: "created" in lab.kubectl("create", "-f", "-", stdin=pods(20, 1), check=False), lambda: "no pod")
    lab.settled("app=restarts", {"Pending": 1, "Running": 20})
    lab.kubectl("delete", "pod", "r-0")
    lab.settled("app=restarts", {"Running": 20})


def test_pods_start_after_the_agent_was_killed(lab: Lab) -> None:
    lab.apply(pods(0, 10))
    lab.settled("app=restarts", {"Running": 10})
    kill(lab, "lamina", "agent")
    offered = ("get", "nodes", "-o", "jsonpath={.items[*].status.allocatable.nvidia\\.com/gpu}")
    wait_until(lambda: lab.kubectl(*offered) == "20", lambda: "the node offers no GPU")
    lab.apply(pods(10, 10))
    lab.settled("app=restarts", {"Running": 20})
    assert "1000MiB" in lab.kubectl("exec", "r-19", "--", "nvidia-smi")
