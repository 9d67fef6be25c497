"""S4.7: the limit on compute, which the functional test calls unknown, is measured and held.

Each pod has a GPU of its own, because the memory of two does not fit one. By HAMi's policy `default` it would be lent
all of it; `force` holds it to its share.
"""

from tests.scenarios.conftest import StartLab
from tests.scenarios.gpu_time import busy_ns, percents
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
