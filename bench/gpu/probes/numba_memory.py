"""Numba takes memory until it is refused, and runs a kernel afterwards."""

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError

from bench.gpu.probes.kernels import say

MIB = 1 << 20
BLOCK_MIB = 64


@cuda.jit
def add(values, amount):  # type: ignore[no-untyped-def]
    """Adds to each."""
    i = cuda.grid(1)
    if i < values.size:
        values[i] += amount


def main() -> None:
    free, total = cuda.current_context().get_memory_info()
    held = []
    try:
        while True:
            held.append(cuda.device_array(BLOCK_MIB * MIB, np.uint8))
    except CudaAPIError as refused:
        said = str(refused)
    taken = len(held) * BLOCK_MIB
    held.clear()
    cuda.current_context().deallocations.clear()
    values = cuda.to_device(np.ones(1024, np.float32))
    add[4, 256](values, 1.0)
    say(
        {
            "total": total / MIB,
            "taken of what was free": 100 * taken * MIB / free,
            "it is out of memory": "OUT_OF_MEMORY" in said,
            "sum after the refusal": float(values.copy_to_host().sum()),
        }
    )


if __name__ == "__main__":
    main()
