"""What contexts take beyond their own cost: limits that reserve memory, and loaded code."""

import struct
from pathlib import Path

import pytest

from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.new_driver import on_new_driver
from tests.facade.python_programs import python

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
    [(2, 8 << 20, 1), (1, 80 << 16, 1), (0, 1024, THREADS)],
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


def test_usage_has_the_memory_of_contexts_and_code(container: MakeContainer) -> None:
    box = container(2000)
    with box.waiting(TOOLS + f"load(100), limit(2, {HEAP + 50 * MIB})"):
        (process,) = box.usage().processes
        held = process.held[box.uuids[0]]
        assert (held["context"], held["module"]) == (CONTEXT + 50 * MIB, 100 * MIB)
        assert box.really_held() == CONTEXT + 150 * MIB


def code(*sections: tuple[int, int]) -> bytes:
    """An image of code with sections of so many bytes, the second number being 1 for those that are loaded."""
    header = struct.pack(
        "<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 2, 190, 1, 0, 0, 64, 0, 64, 0, 0, 64, len(sections), 0
    )
    return header + b"".join(struct.pack("<IIQQQQIIQQ", 0, 1, 2 * on, 0, 0, size, 0, 0, 1, 0) for size, on in sections)


def test_a_thread_without_a_context_loads_a_library(container: MakeContainer) -> None:
    """As PyTorch's backward threads do: it takes nothing yet, and the program goes on."""
    script = (
        TOOLS
        + """
import threading
library, codes = ctypes.c_void_p(), []
def load():
    context = ctypes.c_void_p()
    cuda.cuCtxGetCurrent(ctypes.byref(context))
    image = b".version 7.0\\n.target sm_50\\n.address_size 64\\n"
    code = cuda.cuLibraryLoadData(ctypes.byref(library), image, None, None, 0, None, None, 0)
    codes.extend([context.value, code])
before = free()
thread = threading.Thread(target=load)
thread.start(), thread.join()
print(codes, free() == before, cuda.cuLibraryUnload(library))
"""
    )
    done = python(container(2000), script)
    assert done.stdout.splitlines() == ["[None, 0] True 0"], done.stderr


def test_without_a_figure_code_counts_as_what_its_image_loads(tmp_path: Path) -> None:
    """As where the driver knows the process by another pid; images that do not tell are not counted then."""
    (tmp_path / "image").write_bytes(code((1000 * MIB, 1), (5000 * MIB, 0), (500 * MIB, 1)))
    (tmp_path / "cut").write_bytes((tmp_path / "image").read_bytes()[:-1])
    script = f"""
image, handle = open({str(tmp_path / "image")!r}, "rb").read(), ctypes.c_void_p()
def load(image):
    return cuda.cuModuleLoadData(ctypes.byref(handle), image)
def library():
    return cuda.cuLibraryLoadData(ctypes.byref(handle), image, None, None, 0, None, None, 0)
cuda.cuInit(0)
print(load(b".version 7.0"), load(image[:4] + bytes(60)), load(image), create(1, 0, 501), load(image), library())
print(cuda.cuModuleUnload(handle), library(), create(1, 0, 501), cuda.cuLibraryUnload(handle))
for name in ("cut", "image", "absent"):
    print(cuda.cuModuleLoad(ctypes.byref(handle), {str(tmp_path)!r}.encode() + b"/" + name.encode()), end=" ")
print(create(1, 0, 501), create(1, 0, 500))
"""
    assert on_new_driver(tmp_path, script) == ["0 0 0 2 2 2", "0 0 2 0", "0 0 0 2 0"]
