"""S0 on real kubelets and a real scheduler: Huawei CCE's document, on two of its GPUs."""

import re
import sys

from tests.cluster.rows.replay import Replay
from tests.scenarios import cce as s0
from tests.scenarios.rows import TABLE

ROWS = TABLE["S0"]
memory_only, memory_and_compute = s0.memory_only, s0.memory_and_compute


globals().update(ROWS.tests)


def test_s0_1_the_node_sees_the_whole_card(lab: Replay, memory_only: str) -> None:
    lab.apply(memory_only)
    lab.running_pod(s0.APP)
    observed = lab.on_node(sys.executable, "-m", "lamina_lab.smi")
    assert len(re.findall(r"0MiB / +16160MiB", observed)) == 2, observed
    assert "No running processes found" in observed


def test_s0_2_a_program_gets_a_quarter_of_the_time(lab: Replay, memory_and_compute: str) -> None:
    lab.apply(memory_and_compute)
    output = lab.kubectl("exec", lab.running_pod(s0.APP), "--", "gpu-load", "--seconds", "4", "--memory-mib", "4000")
    [share] = re.findall(r"GPU 0: ([0-9.]+) %", output)
    assert 20 <= float(share) <= 27, output
