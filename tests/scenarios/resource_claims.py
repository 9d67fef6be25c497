"""Programs of CUDA in pods with claims."""

from tests.scenarios.labs import Lab

ALLOCATE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, {gpu}) == 0
for size in {sizes}:
    print(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)), flush=True)
{then}
"""
OUT_OF_MEMORY = "2"


def allocate(lab: Lab, pod: str, container: str, *sizes: int, then: str = "", gpu: int = 0) -> list[str]:
    """What CUDA answers to allocations of one program."""
    script = ALLOCATE.format(sizes=sizes, then=then, gpu=gpu)
    return lab.kubectl("exec", pod, "-c", container, "--", "python3", "-c", script).split()
