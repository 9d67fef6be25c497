"""Calls of NVML that the facade answers itself answer for every buffer and size as the driver does."""

import json
import os
import subprocess
import sys

from lamina_lab import simgpu
from tests.facade.conftest import PRELUDE, Container, MakeContainer

CALLS = """
import itertools, json
begin()
lib = ctypes.CDLL("libnvidia-ml.so.1")
lib.nvmlInit_v2()
device, buffer, other = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 17), ctypes.create_string_buffer(64)
lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
at, also = ctypes.addressof(buffer), ctypes.addressof(other)
# What each argument is: d a device, p a place, v the place of a type, c the place of a size, s a size for a text, t a
# text, i a process, n a number. L is a list of processes, M a structure with a version.
VALUES = {
    "d": (None, device), "p": (None, at), "v": (None, also), "c": (None, 0, 1, 2, 120, 4096),
    "s": (0, 1, 2, 8, 4096, 1 << 31, 1 << 40), "t": (None, b"", b"x"), "i": (os.getpid(), 1 << 30),
    "n": (0, 1, 2, 3, 7, 10, 50, 1 << 31), "0": (0,),
    "L": [None, *((24 * form | mode << 32 | form << 24, size, place) for form in (0, 1, 2) for mode in range(4)
        for size in (0, 1, 2, 4096) for place in (0, at))],
    "M": [None, *((size | form << 24, 0, 0) for size in (0, 32, 40) for form in (0, 1, 2))],
}
KINDS = {"nvmlSystemGetProcessName": "ips", "nvmlDeviceGetSamples": "dn0vcp", "nvmlDeviceGetProcessUtilization": "dpc0",
    "nvmlDeviceGetAccountingPids": "dcp", "nvmlDeviceGetCount": "c", "nvmlDeviceGetCount_v2": "c",
    "nvmlDeviceGetTopologyNearestGpus": "dncp", "nvmlSystemGetTopologyGpuSet": "ncp", "nvmlDeviceGetIndex": "dp",
    "nvmlDeviceGetHandleByUUID": "tp", "nvmlDeviceGetHandleByPciBusId_v2": "tp", "nvmlDeviceGetHandleBySerial": "tp",
    "nvmlDeviceGetHandleByIndex_v2": "np", "nvmlDeviceGetMemoryInfo": "dp", "nvmlDeviceGetMemoryInfo_v2": "dM",
    "nvmlDeviceGetBAR1MemoryInfo": "dp", "nvmlDeviceGetUtilizationRates": "dp", "nvmlDeviceGetAttributes_v2": "dp",
    "nvmlDeviceGetRunningProcessDetailList": "dL", "nvmlDeviceGetProcessesUtilizationInfo": "dM",
    **{f"nvmlDeviceGet{kind}RunningProcesses{form}": "dcp" for kind in ("Compute", "Graphics", "MPSCompute")
        for form in ("", "_v2", "_v3")}}
def sent(kind, value):
    if value is None or kind in "dt":
        return value
    if kind in "LM":
        return (ctypes.c_uint64 * 32)(*value)
    if kind == "c":
        return ctypes.byref(ctypes.c_uint(value))
    return (ctypes.c_void_p if kind in "pv" else ctypes.c_uint64)(value)
def seen(kind, value):
    return [value._obj.value] if kind == "c" and value is not None else [value[1]] if kind == "L" and value else []
for name, kinds in KINDS.items():
    for values in itertools.product(*(VALUES[kind] for kind in kinds)) if hasattr(lib, name) else ():
        arguments = [sent(*each) for each in zip(kinds, values)]
        code = getattr(lib, name)(*arguments)
        after = [figure for each in zip(kinds, arguments) for figure in seen(*each)]
        shown = ["own" if value == os.getpid() else "it" if value in (at, also, device) else value for value in values]
        print(json.dumps([f"{name} {shown}".replace(str(at), "it"), [code, *after]]))
"""


def answers(box: Container, *, facade: bool) -> dict[str, list[int]]:
    outside = {**os.environ, "SIMGPU_MACHINE": str(box.folder / "machine")}
    outside["LD_LIBRARY_PATH"] = str(simgpu.driver_folder())
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + CALLS], env=box.environment() if facade else outside,
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_buffers_of_any_size_are_answered_as_by_the_driver(container: MakeContainer) -> None:
    box = container(3000)
    driver, facade = answers(box, facade=False), answers(box, facade=True)
    assert len(driver) > 900
    assert {what: (driver[what], facade[what]) for what in driver if driver[what] != facade[what]} == {}
