"""How busy the GPU is with the container's own work, scaled to its share; and the readers that people use."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lamina_lab import simgpu
from tests.facade.conftest import CONTEXT, MIB, Container, MakeContainer
from tests.facade.nvml_programs import ask
from tests.waiting import wait_until

LOAD = (sys.executable, "-m", "lamina.operations.gpu_load", "--seconds", "30")
BIN = Path(sys.executable).parent
TOOLS = {
    "gpustat": (BIN / "gpustat", "--no-color", "--show-pid"),
    "nvitop": (BIN / "nvitop", "--once"),
    "lamina-smi": (sys.executable, "-m", "lamina_lab.smi"),
}
RATES = """
card = devices()[0]
rates = nvml.nvmlDeviceGetUtilizationRates(card)
samples = nvml.nvmlDeviceGetSamples(card, nvml.NVML_GPU_UTILIZATION_SAMPLES, 0)[1]
try:
    each = [[p.pid, p.smUtil] for p in nvml.nvmlDeviceGetProcessUtilization(card, 0)]
except nvml.NVMLError_NotFound:
    each = []
print(json.dumps([rates.gpu, rates.memory, [sample.sampleValue.uiVal for sample in samples], each]))
"""


def outsider(box: Container) -> "subprocess.Popen[bytes]":
    """A busy process of the machine that is not in the container."""
    library = str(simgpu.driver_folder())
    outside = {**os.environ, "SIMGPU_MACHINE": str(box.folder / "machine"), "LD_LIBRARY_PATH": library}
    return subprocess.Popen(LOAD, env=outside, stdout=subprocess.DEVNULL)


def test_a_container_that_uses_all_of_its_share_reads_100_percent(container: MakeContainer) -> None:
    box = container(2000, cores=50)
    inside = box.start(*LOAD)

    def busy() -> Any:
        seen: Any = ask(box, RATES)
        return seen if seen[0] >= 90 and len(seen[3]) == 1 else None

    try:
        gpu, memory, samples, each = wait_until(busy)
        assert gpu >= 90 and 40 <= memory <= 60 and samples[0] >= 90
        assert each[0][0] == inside.pid and each[0][1] >= 90
    finally:
        inside.kill()
        inside.communicate()


def test_the_work_of_others_is_not_shown(container: MakeContainer) -> None:
    box = container(2000)
    outside = outsider(box)
    try:
        real = str(simgpu.library("libnvidia-ml.so.1"))
        busy = f"n = ctypes.CDLL({real!r}); u, d = (ctypes.c_uint * 2)(), ctypes.c_void_p(); n.nvmlInit_v2();"
        busy += "n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d));"
        busy += "n.nvmlDeviceGetUtilizationRates(d, u); print(u[0])"
        wait_until(lambda: ask(box, busy) >= 90)  # type: ignore[operator]
        assert ask(box, RATES) == [0, 0, [0], []]
    finally:
        outside.kill()
        outside.wait()


def test_a_bar1_window_is_no_larger_than_the_memory(container: MakeContainer) -> None:
    script = """
window = nvml.nvmlDeviceGetBAR1MemoryInfo(devices()[0])
print(json.dumps([window.bar1Total, window.bar1Free, window.bar1Used]))
"""
    assert ask(container(2000), script) == [2000 * MIB, 2000 * MIB, 0]


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_show_the_container(tool: str, container: MakeContainer) -> None:
    box = container(2000, gpus=3, granted=(1,))
    inside, outside = box.start(*LOAD), outsider(box)
    try:
        wait_until(lambda: box.usage().devices[0].held >= CONTEXT)
        size = {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        done = box.run(*TOOLS[tool], **size)
        assert done.returncode == 0, done.stderr
        assert "2000" in done.stdout or "2.00GiB" in done.stdout or "1.95GiB" in done.stdout, done.stdout
        assert f"{CONTEXT // MIB}" in done.stdout and str(inside.pid) in done.stdout, done.stdout
        assert "32768" not in done.stdout and "32.00GiB" not in done.stdout
        assert str(outside.pid) not in done.stdout
    finally:
        for process in (inside, outside):
            process.kill()
            process.communicate()
