"""Calls that the driver allows next to a capture do not disturb it under the facade either."""

import pytest

from tests.facade.conftest import MakeContainer
from tests.facade.python_programs import python

LIMIT = 3000
CAPTURES = """
import threading
begin()
stream, other, at, graph = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
cuda.cuStreamCreate(ctypes.byref(stream), 1), cuda.cuStreamCreate(ctypes.byref(other), 1)
context = ctypes.c_void_p()
cuda.cuCtxGetCurrent(ctypes.byref(context))
def ordered(mib):
    code = cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(mib << 20), other)
    return code or cuda.cuMemFreeAsync(at, other)
def nodes():
    count = ctypes.c_size_t()
    return cuda.cuGraphGetNodes(graph, None, ctypes.byref(count)), count.value
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("rest", ctypes.c_char * 96)]
def create(mib):
    handle = ctypes.c_uint64()
    return (cuda.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(mib << 20), ctypes.byref(Properties(1, 0, 1, 0)),
                             ctypes.c_uint64(0)) or cuda.cuMemRelease(handle))
def while_capturing(mode, call, elsewhere):
    "What the call answers while this thread captures two nodes, and how the capture ends."
    codes = [cuda.cuStreamBeginCapture_v2(stream, mode)]
    codes.append(cuda.cuMemsetD32Async(at, 0, ctypes.c_size_t(1), stream))
    said = []
    def make():
        cuda.cuCtxSetCurrent(context)
        said.append(call())
    if elsewhere:
        thread = threading.Thread(target=make)
        thread.start(), thread.join()
    else:
        make()
    codes.append(cuda.cuMemsetD32Async(at, 0, ctypes.c_size_t(1), stream))
    codes.append(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    return said[0] == 0, max(codes)
cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1 << 20))
kept = ctypes.c_uint64(at.value)
print(ordered(40))
"""
CALLS = {
    "figures": "lambda: free()[0]",
    "pool": "lambda: ordered(100)",
    "physical memory near the limit": "lambda: create(2600)",
    "waiting": "lambda: cuda.cuStreamSynchronize(other)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_calls_leave_captures_alone(call: str, container: MakeContainer) -> None:
    script = f"""
for mode in 0, 1, 2:
    for elsewhere in False, True:
        at = ctypes.c_uint64(kept.value)
        print(while_capturing(mode, {call}, elsewhere))
        ordered(40)
"""
    done = python(container(LIMIT), CAPTURES + script)
    assert done.stdout.splitlines() == ["0"] + ["(True, 0)"] * 6, done.stderr


def test_what_a_capture_forbids_is_forbidden_and_ends_it(container: MakeContainer) -> None:
    """The null control: the simulated driver is as strict as the modes say, with limits and without."""
    script = """
for mode in 0, 1, 2:
    for elsewhere in False, True:
        print(while_capturing(mode, lambda: take(1), elsewhere), end=" ")
"""
    done = python(container(LIMIT), CAPTURES + script)
    ended, fine = "(False, 901)", "(True, 0)"
    assert done.stdout == "0\n" + " ".join([ended, ended, ended, fine, fine, fine, ""]), done.stderr


def test_memory_of_a_pool_counts_while_a_thread_captures(container: MakeContainer) -> None:
    script = """
codes = [cuda.cuStreamBeginCapture_v2(stream, 1)]
codes += [cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(500 << 20), other) for _ in range(10)]
print(codes, cuda.cuStreamEndCapture(stream, ctypes.byref(graph)), free()[1] < 500)
"""
    done = python(container(LIMIT), CAPTURES + script)
    assert done.stdout == "0\n[0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2] 0 True\n", done.stderr
