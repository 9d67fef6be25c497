"""After a fault of the GPU, every call answers as the driver does, so that a program's own checks find it."""

from tests.facade.conftest import MakeContainer
from tests.facade.python_programs import python

BROKEN = """
begin()
module, kernel, at, ns = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64(1000)
cuda.cuModuleLoadData(ctypes.byref(module), b"simgpu")
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fault")
stream, pool = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuStreamCreate(ctypes.byref(stream), 1)
cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(500 << 20))
params = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
def answers():
    left, all, size = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_size_t(1 << 20)
    one = ctypes.c_uint64()
    return [cuda.cuMemGetInfo_v2(None, ctypes.byref(ctypes.c_size_t())), free()[0], take(1), take(5000),
            cuda.cuMemAllocAsync(ctypes.byref(one), size, stream), cuda.cuMemFreeAsync(at, stream),
            cuda.cuMemFree_v2(at), cuda.cuStreamSynchronize(stream), cuda.cuCtxSynchronize()]
print(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, params, None), cuda.cuCtxSynchronize())
print(*answers())
print(cuda.cuDevicePrimaryCtxReset_v2(0), *begin(), *free(), take(2600))
"""


def test_a_broken_context_says_so_until_it_is_reset(container: MakeContainer) -> None:
    """What is over the limit is refused before the driver looks at the context."""
    done = python(container(3000), BROKEN)
    assert done.stdout.splitlines() == ["0 700", "700 700 700 2 700 700 700 700 700", "0 0 0 0 0 2697 0"], done.stderr
