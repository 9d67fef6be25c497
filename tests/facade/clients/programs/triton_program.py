"""A kernel in Triton, launched without PyTorch on memory of the driver."""

import steps
import triton
import triton.language as tl
from cuda.bindings import driver


@triton.jit
def add(values, count, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(values + i, tl.load(values + i, mask=i < count) + 1.0, mask=i < count)


class Values:
    """What Triton needs of a tensor."""

    dtype = "fp32"

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


driver.cuInit(0)
context = driver.cuDevicePrimaryCtxRetain(0)[1]
driver.cuCtxSetCurrent(context)
values = Values(int(driver.cuMemAlloc(4096)[1]))
steps.run({}, RuntimeError, lambda: add[(4,)](values, 1024, block=256), driver.cuCtxSynchronize)
