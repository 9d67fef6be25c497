"""S4.8: `nvidia.com/priority` works: low yields to high on the same GPU, and goes on after it."""

import time

from lamina import simgpu
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab, wait_for

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: ubuntu:18.04
      command: [sh, -c, "{command}"]
      resources:
        limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: 5000, nvidia.com/gpucores: 40, nvidia.com/priority: {priority}}}
"""


def busy_ns(lab: Lab) -> list[int]:
    """GPU time of each process on the lab's GPU, by age."""
    machine = next((lab.root / lab.name).rglob("machine"))
    return [process.busy_ns for process in simgpu.read(machine).gpus[0].processes]


def test_s4_8_low_waits_while_high_works_and_goes_on_after(start_lab: StartLab) -> None:
    lab = start_lab("priority", "--gpus-per-node", "1", "--gpu", "V100-PCIE-32GB")
    lab.apply(POD.format(name="low", priority=1, command="gpu-load --seconds 600"))
    wait_for(lambda: bool(busy_ns(lab)) and busy_ns(lab)[0] > 500_000_000, lambda: lab.kubectl("get", "events"))
    lab.apply(POD.format(name="high", priority=0, command="gpu-load --seconds 6 && echo done; sleep 600"))
    wait_for(lambda: len(busy_ns(lab)) == 2, lambda: lab.kubectl("get", "events"))
    time.sleep(1)
    low_before, high_before = busy_ns(lab)
    time.sleep(2)
    low_then, high_then = busy_ns(lab)
    assert high_then - high_before > 500_000_000, "high works"
    assert low_then - low_before < 100_000_000, "and low does not"
    wait_for(lambda: "done" in lab.kubectl("logs", "high"), lambda: lab.kubectl("logs", "high"))
    time.sleep(0.5)
    resumed = busy_ns(lab)[0]
    wait_for(lambda: busy_ns(lab)[0] - resumed > 300_000_000, lambda: f"low stays where it was: {busy_ns(lab)}")
