"""A program in Numba."""

import numpy as np
import steps
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError


@cuda.jit
def add(values, amount):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += amount


values = cuda.to_device(np.zeros(1024, np.float32))
assert values.copy_to_host().shape == (1024,)
allocators = {
    "device": lambda size: cuda.device_array(size, np.uint8),
    "managed": lambda size: cuda.managed_array(size, np.uint8),
    "context": lambda size: cuda.current_context().memalloc(size),
}
steps.run(allocators, CudaAPIError, lambda: add[4, 256](values, 1.0), cuda.synchronize)
