"""Programs on a driver that knows all kinds of memory."""

import subprocess
import sys
from pathlib import Path

from lamina.enforcement import DeviceLimit, Limits, environment, write_container
from tests.building import compile_program
from tests.facade.conftest import MIB, PRELUDE

LOCATIONS = """
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("rest", ctypes.c_char * 96)]
def create(location, id, mib):
    properties = Properties(1, 0, location, id)
    return cuda.cuMemCreate(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20), ctypes.byref(properties),
                            ctypes.c_uint64(0))
def pool(location, id, mib):
    handle, pointer, properties = ctypes.c_void_p(), ctypes.c_uint64(), Properties(1, 0, location, id)
    codes = cuda.cuInit(0), cuda.cuMemPoolCreate(ctypes.byref(handle), ctypes.byref(properties))
    codes += cuda.cuMemAllocFromPoolAsync(ctypes.byref(pointer), ctypes.c_size_t(mib << 20), handle, None),
    return *codes, cuda.cuMemPoolDestroy(handle)
"""


def on_new_driver(folder: Path, script: str, *flags: str) -> list[str]:
    """What a script prints under 2000 MiB of a driver that knows all kinds of memory, compiled with these flags."""
    (folder / "driver").mkdir()
    compile_program(folder / "driver", "libcuda.so.1", ["native/tests/facade_new_driver.c"], "-shared", "-fPIC", *flags)
    limit = DeviceLimit(uuid="GPU-00000000-0000-0000-0000-000000000000", memory_bytes=2000 * MIB)
    write_container(folder, Limits(devices=(limit,)))
    variables = environment(folder, folder / "driver", {"PATH": "/usr/bin:/bin"})
    command = [sys.executable, "-c", PRELUDE + LOCATIONS + script]
    done = subprocess.run(command, env=variables, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
