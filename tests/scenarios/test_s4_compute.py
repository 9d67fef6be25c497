"""S4.7: the limit on compute, which the functional test calls unknown, is measured and held.

Each pod has a GPU of its own, so by HAMi's policy `default` it would be lent all of it; `force` holds it to its share.
"""

import time

from lamina_lab import simgpu
from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: share-{cores}}}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: ubuntu:18.04
      command: [gpu-load, --kernel-ms, "10", --seconds, "600"]
      resources:
        limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: 20000, nvidia.com/gpucores: {cores}}}
"""
SHARES = (30, 60)
WINDOW_S = 3.0


def busy_ns(lab: Lab) -> list[int]:
    """GPU time of the process on each GPU that has one; the memory of two pods does not fit one GPU."""
    machine = next((lab.root / lab.name).rglob("machine"))
    return [gpu.processes[0].busy_ns for gpu in simgpu.read(machine).gpus if gpu.processes]


def percents(lab: Lab) -> list[float]:
    """Which share of a window's time each process had its GPU, from the smallest."""
    before, start = busy_ns(lab), time.monotonic_ns()
    time.sleep(WINDOW_S)  # parts of the GPU's time show in real time only
    after, passed = busy_ns(lab), time.monotonic_ns() - start
    return sorted(100 * (then - now) / passed for then, now in zip(after, before, strict=True))


def test_s4_7_compute_limits_hold(start_lab: StartLab) -> None:
    lab = start_lab("compute", "--gpu", "V100-PCIE-32GB", config="hami: {gpuCorePolicy: force}")
    for cores in SHARES:
        lab.apply(POD.format(cores=cores))
    wait_until(lambda: len(busy_ns(lab)) == len(SHARES), lambda: lab.kubectl("describe", "pods"))
    seen: list[list[float]] = []

    def held() -> bool:
        """A machine that is busy otherwise may give a program less than its share, never more."""
        seen.append(percents(lab))
        assert all(got < share + 4 for got, share in zip(seen[-1], SHARES, strict=True)), seen
        return all(abs(got - share) <= 2 for got, share in zip(seen[-1], SHARES, strict=True))

    percents(lab)  # what was saved up before the first launch
    wait_until(held, lambda: str(seen), 60)
