"""A program in a container that does what a test tells it, while the test changes what the agent says."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lamina.enforcement import layout
from tests.facade.conftest import PRELUDE, Container

SCRIPT = """
begin()
def total():
    all = ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(None, ctypes.byref(all))
    return all.value >> 20
for line in sys.stdin:
    print(int(eval(line)), flush=True)
"""
Tell = Callable[[str], int]
AHEAD_NS = 250_000_000


WORK = """
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
def load():
    return (cuda.cuModuleLoadData(ctypes.byref(module), b"simgpu")
            or cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"spin"))
def launch():
    ns = ctypes.c_uint64(1000)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
    return cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, params, None) or cuda.cuCtxSynchronize()
def keep(mib):
    at = ctypes.c_uint64()
    return at.value if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib << 20)) == 0 else 0
def drop(at):
    return cuda.cuMemFree_v2(ctypes.c_uint64(at))
"""
"""Definitions for `running`: a kernel that can be launched, and memory."""


@contextmanager
def running(box: Container, more: str = "") -> Iterator[Tell]:
    """A program in the container that evaluates each line that it gets; `more` defines names for it."""
    with box.start(sys.executable, "-c", PRELUDE + more + SCRIPT) as process:

        def tell(expression: str) -> int:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{expression}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        try:
            tell("0")
            yield tell
        finally:
            process.kill()


def beat(box: Container, ago_ns: int) -> None:
    """The agent decided so long ago."""
    with (box.folder / "arbiter").open("r+b") as file:
        file.seek(layout.ArbiterFile.heartbeat.offset)
        file.write((time.monotonic_ns() - ago_ns).to_bytes(8, "little"))


@contextmanager
def beating(box: Container) -> Iterator[None]:
    """An agent that lives and decides nothing new. Its clock is ahead, for machines that are busy."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.wait(0.05):
            beat(box, -AHEAD_NS)

    beat(box, -AHEAD_NS)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
