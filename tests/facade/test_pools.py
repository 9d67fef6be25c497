"""Memory pools, and memory that is only partly or not at all that of a GPU."""

from pathlib import Path

from tests.facade.conftest import CONTEXT, MakeContainer
from tests.facade.new_driver import on_new_driver
from tests.facade.python_programs import python

FREED = """
pointer = ctypes.c_uint64()
begin()
print(cuda.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(1000 << 20), None))
print(cuda.cuMemFreeAsync(pointer, None), free()[0])
"""


def test_memory_that_a_pool_returns_late_is_counted_then(container: MakeContainer) -> None:
    """The driver lets go at the synchronization, not at the free nor at a look in between."""
    box = container(2000)
    done = python(box, FREED + "print(cuda.cuStreamSynchronize(None)); input()", timeout=60)
    assert done.stdout.split() == ["0", "0", "0", "0"], done.stderr
    assert box.usage().devices[0].held == CONTEXT


def test_what_a_pool_took_beyond_a_request_is_not_counted_once_it_is_returned(container: MakeContainer) -> None:
    """Nothing was freed: the driver takes memory in steps of 32 MiB and lets go of the rest at the synchronization."""
    box = container(2000)
    script = """
pointer = ctypes.c_uint64()
begin()
print(cuda.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(40 << 20), None), free()[0])
print(cuda.cuCtxSynchronize()); input()
"""
    done = python(box, script, timeout=60)
    assert done.stdout.split() == ["0", "0", "0"], done.stderr
    assert box.usage().devices[0].held == CONTEXT + (40 << 20)


def test_a_part_of_a_gpus_memory_is_memory_of_the_gpu(tmp_path: Path) -> None:
    """A locality domain's id has the ordinal in its first byte."""
    script = "cuda.cuInit(0)\nprint(create(6, 0x0100, 1500), create(6, 0x0300, 1500), create(1, 0, 1500))"
    assert on_new_driver(tmp_path, script) == ["0 2 2"]


def test_managed_pools_count_what_is_taken_from_them_wherever_it_may_be(tmp_path: Path) -> None:
    script = """
def take_from(handle, mib):
    pointer = ctypes.c_uint64()
    return cuda.cuMemAllocFromPoolAsync(ctypes.byref(pointer), ctypes.c_size_t(mib << 20), handle, None), pointer
cuda.cuInit(0)
own, none = ctypes.c_void_p(), Properties(2, 0, 0, 0)
place = (ctypes.c_int * 2)(0, 0)
print(cuda.cuMemGetDefaultMemPool(ctypes.byref(own), place, 2))
for location in (0, 1, 2):
    handle, kind = ctypes.c_void_p(), Properties(2, 0, location, 0)
    print(cuda.cuMemPoolCreate(ctypes.byref(handle), ctypes.byref(kind)), end=" ")
    first, second, third = take_from(handle, 1500), take_from(own, 501), take_from(own, 500)
    print(first[0], second[0], third[0], cuda.cuMemFreeAsync(first[1], None), take_from(own, 1501)[0], end=" ")
    print(cuda.cuMemFree_v2(third[1]), cuda.cuMemPoolDestroy(handle))
"""
    assert on_new_driver(tmp_path, script) == ["0"] + ["0 0 2 0 0 2 0 0"] * 3


def test_an_allocation_of_another_processs_pool_counts_while_it_is_imported(tmp_path: Path) -> None:
    script = """
def use(number):
    pointer, data = ctypes.c_uint64(), (ctypes.c_uint64 * 8)(number)
    return cuda.cuMemPoolImportPointer(ctypes.byref(pointer), ctypes.c_void_p(8), data), pointer
cuda.cuInit(0)
first, second, third = use(0x100), use(0x200), use(0x300)
print(first[0], second[0], third[0], create(1, 0, 401), create(1, 0, 400))
print(cuda.cuMemFree_v2(first[1]), cuda.cuMemFreeAsync(second[1], None), create(1, 0, 1601), create(1, 0, 1600))
"""
    assert on_new_driver(tmp_path, script) == ["0 0 2 2 0", "0 0 2 0"]


def test_host_memory_is_not_counted_and_its_pools_come_and_go(tmp_path: Path) -> None:
    script = "print(pool(2, 0, 5000), pool(3, 1, 5000), create(2, 0, 5000), create(3, 0, 5000), create(1, 0, 1500))"
    assert on_new_driver(tmp_path, script) == ["(0, 0, 0, 0) (0, 0, 0, 0) 0 0 0"]
