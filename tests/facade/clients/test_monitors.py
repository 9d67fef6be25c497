"""Unmodified programs that show GPUs see the share and what it holds."""

import json
import sys
from pathlib import Path

from tests.facade.clients.container import LIMIT_MIB, ClientContainer, reported

BIN = Path(sys.executable).parent
CONTEXT_MIB = 412
HOLDING = "begin(); assert take(1000) == 0"
PYNVML = """
import json, pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
both = [pynvml.nvmlDeviceGetMemoryInfo(device), pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)]
processes = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
print(json.dumps([[[m.total >> 20, m.used >> 20] for m in both], [[p.pid, p.usedGpuMemory >> 20] for p in processes]]))
"""


def test_nvidia_ml_py(tmp_path: Path) -> None:
    box = ClientContainer(tmp_path)
    with box.waiting(HOLDING) as holder:
        memory, processes = json.loads(reported(box, sys.executable, "-c", PYNVML))
    assert memory == [[LIMIT_MIB, 1000 + CONTEXT_MIB]] * 2
    assert processes == [[holder.pid, 1000 + CONTEXT_MIB]]


def test_gpustat(tmp_path: Path) -> None:
    box = ClientContainer(tmp_path)
    with box.waiting(HOLDING) as holder:
        (gpu,) = json.loads(reported(box, BIN / "gpustat", "--json"))["gpus"]
    assert (gpu["memory.total"], gpu["memory.used"]) == (LIMIT_MIB, 1000 + CONTEXT_MIB)
    assert [(process["pid"], process["gpu_memory_usage"]) for process in gpu["processes"]] == [
        (holder.pid, 1000 + CONTEXT_MIB)
    ]


def test_nvitop(tmp_path: Path) -> None:
    box = ClientContainer(tmp_path)
    with box.waiting(HOLDING) as holder:
        done = box.run(BIN / "nvitop", "--once", TERM="xterm", COLUMNS="120", LINES="40")
    assert done.returncode == 0, done.stderr
    assert "580.95.05" in done.stdout and str(holder.pid) in done.stdout
    assert f"{1000 + CONTEXT_MIB}MiB / {LIMIT_MIB}MiB" in done.stdout
