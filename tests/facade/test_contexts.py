"""What contexts take beyond their own cost: limits that reserve memory, and loaded code."""

import pytest

from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.test_processes import python

TOOLS = """
def limit(which, value):
    return cuda.cuCtxSetLimit(which, ctypes.c_size_t(value))
def load(mib):
    module = ctypes.c_void_p()
    return cuda.cuModuleLoadData(ctypes.byref(module), b"mib=%d" % mib), module
begin()
"""
HEAP = 8 << 20  # what a context has by itself
THREADS = 80 * 2048  # of a V100


@pytest.mark.parametrize(
    ("which", "by_itself", "unit"),
    [(2, 8 << 20, 1), (1, 1 << 20, 1), (0, 1024, THREADS)],
    ids=["heap", "fifo", "stack"],
)
def test_limits_that_reserve_memory_count(which: int, by_itself: int, unit: int, container: MakeContainer) -> None:
    more, too_much = (600 << 20) // unit, (1698 << 20) // unit + 1
    script = f"""
print(limit({which}, {by_itself + more}), free(), limit({which}, {by_itself + too_much}), free())
print(limit({which}, 512), free(), limit({which}, {by_itself + more}), free())
created = ctypes.c_void_p()
print(cuda.cuCtxCreate_v2(ctypes.byref(created), 0, 0), limit({which}, {by_itself + more}), free())
print(cuda.cuCtxDestroy_v2(created), free(), cuda.cuDevicePrimaryCtxReset_v2(0), begin(), free())
"""
    box = container(2000)
    done = python(box, TOOLS + script)
    lines = ["0 (0, 1097) 2 (0, 1097)", "0 (0, 1697) 0 (0, 1097)", "0 0 (0, 194)", "0 (0, 1097) 0 (0, 0, 0) (0, 1697)"]
    assert done.stdout.splitlines() == lines, done.stderr


def test_code_and_variables_count_by_the_drivers_figure(container: MakeContainer) -> None:
    box = container(2000)
    script = """
code, module = load(1000)
print(code, free(), load(700)[0], free(), load(600)[0], free())
print(cuda.cuModuleUnload(module), free(), cuda.cuModuleUnload(module), load(0)[0])
print("there", flush=True)
input()
print(cuda.cuDevicePrimaryCtxReset_v2(0), begin(), free())
"""
    done = python(box, TOOLS + script, stdin="\n")
    assert done.stdout.splitlines() == [
        "0 (0, 697) 2 (0, 697) 0 (0, 97)", "0 (0, 1097) 400 0", "there", "0 (0, 0, 0) (0, 1697)",
    ], done.stderr  # fmt: skip


def test_usage_tells_what_contexts_and_code_take(container: MakeContainer) -> None:
    box = container(2000)
    with box.waiting(TOOLS + f"load(100), limit(2, {HEAP + 50 * MIB})"):
        (process,) = box.usage().processes
        held = process.held[box.uuids[0]]
        assert (held["context"], held["module"]) == (CONTEXT + 50 * MIB, 100 * MIB)
        assert box.really_held() == CONTEXT + 150 * MIB
