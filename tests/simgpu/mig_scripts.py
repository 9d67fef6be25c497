"""Scripts that partition a simulated A100 through NVML."""

import json
import sys
from typing import Any

from tests.simgpu.machines import Machine

A100 = "gpus:\n- {model: A100-SXM4-40GB, count: 2}\n"

PARTITION = """
import ctypes, json, sys
import pynvml as nv
nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByIndex(0)
nv.nvmlDeviceSetMigMode(gpu, 1)
for ident, slices, start, size in json.loads(sys.argv[1]):
    at = nv.c_nvmlGpuInstancePlacement_t(start=start, size=size)
    made = nv.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, ident, ctypes.byref(at))
    nv.nvmlGpuInstanceCreateComputeInstance(made, slices)
devices = [nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu, i) for i in range(len(json.loads(sys.argv[1])))]
print(json.dumps([[nv.nvmlDeviceGetUUID(d), nv.nvmlDeviceGetName(d)] for d in devices]))
"""
TWO_HALVES = json.dumps([[9, 2, 0, 4], [9, 2, 4, 4]])


def script(machine: Machine, text: str, *arguments: str, **env: str) -> Any:
    done = machine.run(sys.executable, "-c", text, *arguments, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
