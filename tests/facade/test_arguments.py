"""Nonsense as arguments: the answer under the facade is the driver's own.

A Python program makes the same calls in the same order, each in a forked child, once over the simulated driver and once
over the facade. Where the driver itself crashes nothing is asked of the facade. LAMINA_TEST_FUZZ_CALLS is how many.
"""

import os
import subprocess
import sys

import pytest

from lamina_lab import simgpu
from tests.facade.conftest import Container, MakeContainer

CALLS = """
import ctypes, os, random, sys
seed, count = int(sys.argv[1]), int(sys.argv[2])
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
# What each argument is: p a place, which is missing or sound; n a number; h a handle, which is no one's.
KINDS = {
    "cuInit": "n", "cuDeviceGetCount": "p", "cuDeviceGet": "pn", "cuDeviceTotalMem_v2": "pn", "cuDeviceGetUuid": "pn",
    "cuCtxCreate_v2": "pnn", "cuCtxDestroy_v2": "h", "cuCtxPopCurrent_v2": "p", "cuCtxSetCurrent": "h",
    "cuMemGetInfo_v2": "pp", "cuDevicePrimaryCtxRetain": "pn", "cuDevicePrimaryCtxRelease_v2": "n",
    "cuDevicePrimaryCtxReset_v2": "n", "cuDevicePrimaryCtxGetState": "npp", "cuMemAlloc_v2": "pn",
    "cuMemAllocManaged": "pnn", "cuMemAllocPitch_v2": "ppnnn", "cuMemFree_v2": "h", "cuMemAllocAsync": "pnh",
    "cuMemFreeAsync": "hh", "cuMemPoolCreate": "pp", "cuMemPoolDestroy": "h", "cuMemAllocFromPoolAsync": "pnhh",
    "cuMemCreate": "pnpn", "cuMemRelease": "h", "cuMemMap": "hnnhn", "cuMemUnmap": "hn", "cuArrayCreate_v2": "pp",
    "cuArray3DCreate_v2": "pp", "cuArrayDestroy": "h", "cuMipmappedArrayCreate": "ppn", "cuMipmappedArrayDestroy": "h",
    "cuGraphDestroy": "h", "cuGraphExecDestroy": "h", "cuGraphInstantiateWithFlags": "phn", "cuStreamSynchronize": "h",
    "cuEventSynchronize": "h", "cuMemPoolTrimTo": "hn", "cuMemRetainAllocationHandle": "ph",
    "cuMemGetAddressRange_v2": "pph", "cuGetErrorString": "np", "cuGetProcAddress_v2": "ppnnp",
    "cuDeviceGraphMemTrim": "n",
}
buffer = ctypes.create_string_buffer(4096)
VALUES = {
    "p": [0, ctypes.addressof(buffer)],
    "n": [0, 1, 2, 1 << 31, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1],
    "h": [0, 3, 0x10000, ctypes.addressof(buffer), (1 << 64) - 1],
}
def call(random):
    name = random.choice(sorted(KINDS))
    picked = [random.randrange(len(VALUES[kind])) for kind in KINDS[name]]
    return name, picked, [ctypes.c_uint64(VALUES[kind][i]) for kind, i in zip(KINDS[name], picked)]
random = random.Random(seed)
for number in range(count):
    name, picked, arguments = call(random)
    begun = random.random() < 0.8
    child = os.fork()
    if child == 0:
        sys.stderr.close()
        if begun:
            cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
        code = getattr(cuda, name)(*arguments)
        os.write(1, f"{number} {name} {picked} {code}\\n".encode())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        os.write(1, f"{number} {name} {picked} signal {status}\\n".encode())
"""


def answers(box: Container, seed: int, calls: str, *, facade: bool) -> dict[int, str]:
    command = [sys.executable, "-c", CALLS, str(seed), calls]
    library = str(simgpu.driver_folder())
    outside = {**os.environ, "SIMGPU_MACHINE": str(box.folder / "machine"), "LD_LIBRARY_PATH": library}
    environment = box.environment() if facade else outside
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return {int(line.split()[0]): line for line in done.stdout.splitlines()}


@pytest.mark.parametrize("seed", [1, 2])
def test_nonsense_is_answered_as_by_the_driver(seed: int, container: MakeContainer) -> None:
    calls = os.environ.get("LAMINA_TEST_FUZZ_CALLS", "500")
    box = container(3000)
    driver, facade = (answers(box, seed, calls, facade=facade) for facade in (False, True))
    assert len(driver) == len(facade) == int(calls)
    differ = [(driver[n], facade[n]) for n in driver if "signal" not in driver[n] and driver[n] != facade[n]]
    # What would be over the limit is refused before the driver looks at the other arguments.
    assert [(was, now) for was, now in differ if not now.endswith("] 2") or was.endswith("] 0")] == []
