"""S4.8: `nvidia.com/priority` works: low yields to high on the same GPU, and goes on after it."""

from pathlib import Path

from lamina_lab import simgpu
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

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
NOTHING_FOR_LOW = "sharing: {highPriorityNamespaces: ['*'], lowPriorityPercent: 0}\n"
"""By default low priority keeps 5 percent, which could not be distinguished from a late reaction here."""
SOON_NS = 500_000_000


def busy_ns(lab: Lab) -> list[int]:
    """GPU time of each process on the lab's GPU, by age."""
    machine = next((lab.root / lab.name).rglob("machine"))
    return [process.busy_ns for process in simgpu.read(machine).gpus[0].processes]


def test_s4_8_low_waits_while_high_works_and_goes_on_after(start_lab: StartLab, tmp_path: Path) -> None:
    config = tmp_path / "lamina.yaml"
    config.write_text(NOTHING_FOR_LOW)
    lab = start_lab("priority", "--gpus-per-node", "1", "--gpu", "V100-PCIE-32GB", "--config", str(config))
    lab.apply(POD.format(name="low", priority=1, command="gpu-load --seconds 600"))
    wait_until(lambda: bool(busy_ns(lab)) and busy_ns(lab)[0] > SOON_NS, lambda: lab.kubectl("get", "events"))
    lab.apply(POD.format(name="high", priority=0, command="gpu-load --seconds 6 && echo done; sleep 600"))
    wait_until(lambda: len(busy_ns(lab)) == 2, lambda: lab.kubectl("get", "events"))
    wait_until(lambda: busy_ns(lab)[1] > SOON_NS, "high does not work")
    low_before, high_before = busy_ns(lab)
    wait_until(lambda: busy_ns(lab)[1] - high_before > 2 * SOON_NS, "high stops")
    assert busy_ns(lab)[0] - low_before < 100_000_000, "while high works, low does not"
    wait_until(lambda: "done" in lab.kubectl("logs", "high"), lambda: lab.kubectl("logs", "high"))
    resumed = busy_ns(lab)[0]
    wait_until(lambda: busy_ns(lab)[0] - resumed > 300_000_000, lambda: f"low stays where it was: {busy_ns(lab)}")
