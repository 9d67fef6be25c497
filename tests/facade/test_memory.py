"""Every kind of device memory stops at the limit, to the block, and comes back when it is freed."""

import sys

import pytest

from lamina.enforcement import DeviceLimit, Limits, write_container
from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.python_programs import python

KINDS = (
    "plain", "managed", "pitch", "async", "per-thread", "pool", "async-freed-plainly", "physical", "mapped", "array",
    "array3d", "mipmap",
)  # fmt: skip
WAYS = ("linked", "dlopen", "next", "deepbind", "procaddress", "procaddress1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_memory_of_every_kind_stops_at_the_limit(way: str, kind: str, container: MakeContainer, programs) -> None:
    done = container(2000).run(programs["kinds"], way, kind, FACADE_PLUGIN=str(programs["plugin"]))
    assert done.stdout == "ok\n", done.stdout + done.stderr


def test_a_limit_that_is_no_multiple_of_anything_is_held_to_the_byte(container: MakeContainer, programs) -> None:
    """A block more would exceed it by one byte."""
    box, limit = container(1), CONTEXT + 4 * MIB - 1
    write_container(box.folder, Limits(devices=(DeviceLimit(uuid=box.uuids[0], memory_bytes=limit),)))
    done = python(box, "print(begin(), take(4), take(2), take(2), free())")
    assert done.stdout == "(0, 0, 0) 2 0 2 (0, 1)\n", done.stderr
    assert f"OOM {limit + 1} / {limit}\n" in done.stderr


def test_a_byte_more_than_a_block_takes_another(container: MakeContainer) -> None:
    """The driver gives whole blocks of 2 MiB, so that is what counts, or a GPU shared by many would overflow."""
    script = """
begin()
def fill(bytes, call, *more):
    count = 0
    while call(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(bytes), *more) == 0:
        count += 1
    return count
print(fill((100 << 20) + 1, cuda.cuMemAlloc_v2), fill((2 << 20) + 1, cuda.cuMemAllocManaged, 1),
      fill((1 << 20) + 1, cuda.cuMemAlloc_v2), fill(1 << 20, cuda.cuMemAlloc_v2))
"""
    box = container(2000)
    # of 1697 MiB: 16 of 102 leave 65, 16 of 4 leave 1, which is no whole block
    assert python(box, script).stdout.split() == ["16", "16", "0", "0"]


def test_s4_4_the_refusal_is_logged_in_bytes(container: MakeContainer, programs, tmp_path) -> None:
    script = tmp_path / "tensor.py"
    script.write_text(
        "import ctypes\ncuda = ctypes.CDLL('libcuda.so.1')\ncontext, at = ctypes.c_void_p(), ctypes.c_uint64()\n"
        "cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)\n"
        "print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1241513984)))\n"
    )
    done = container(1000).run(sys.executable, script)
    assert done.stdout == "2\n"
    assert done.stderr == "[lamina] Device 0 OOM 1559232512 / 1048576000\n"


def test_a_context_that_does_not_fit_is_out_of_memory(container: MakeContainer, programs) -> None:
    box = container(302)
    for _ in range(2):  # once to find out what it costs, once knowing it
        done = box.run(programs["kinds"], "linked", "plain")
        assert "cuDevicePrimaryCtxRetain" in done.stdout and done.stdout.endswith(" gave 2\n")
        assert done.stderr == f"[lamina] Device 0 OOM {CONTEXT} / {302 * MIB}\n"
    assert box.usage().devices[0].refusals == 2


def test_what_was_allocated_in_a_context_goes_with_it(container: MakeContainer) -> None:
    script = """
created, before = ctypes.c_void_p(), (begin(), free())
print(cuda.cuCtxCreate_v2(ctypes.byref(created), 0, 0), take(500), take(100), free())
print(cuda.cuCtxDestroy_v2(created), cuda.cuCtxDestroy_v2(created), free(), take(500))
print(cuda.cuDevicePrimaryCtxReset_v2(0), free()[0] in (201, 709), begin(), free())
"""
    done = python(container(2000), script)
    assert done.stdout.splitlines() == ["0 0 0 (0, 794)", "0 201 (0, 1697) 0", "0 True (0, 0, 0) (0, 1697)"], (
        done.stdout + done.stderr
    )


def test_a_primary_context_goes_with_its_last_reference(container: MakeContainer) -> None:
    script = """
print(begin(), begin(), take(500), free())
print(cuda.cuDevicePrimaryCtxRelease_v2(0), free(), cuda.cuDevicePrimaryCtxRelease_v2(0), begin(), free())
"""
    done = python(container(2000), script)
    assert done.stdout.splitlines() == ["(0, 0, 0) (0, 0, 0) 0 (0, 1197)", "0 (0, 1197) 0 (0, 0, 0) (0, 1697)"]


def test_unknown_pointers_are_the_drivers_business(container: MakeContainer) -> None:
    script = """
begin()
print(cuda.cuMemFree_v2(ctypes.c_uint64(0)), cuda.cuMemFree_v2(ctypes.c_uint64(4096)), take(0), free())
host = ctypes.c_void_p()
print(cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(3000 << 20), 0), free())
"""
    assert python(container(2000), script).stdout.splitlines() == ["0 1 1 (0, 1697)", "0 (0, 1697)"]
