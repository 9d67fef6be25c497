"""How long a step takes that does what training does: a copy in, kernels, memory meanwhile, a copy out, a wait."""

import ctypes
import statistics
import sys
import time
from ctypes import byref, c_size_t, c_uint64, c_void_p

from bench.gpu.probes.kernels import Kernels, begin, rounds, say

KERNELS, KERNEL_MS, STEPS = 20, 0.2, 20
BYTES = 1 << 20


def main(rate: int) -> None:
    driver = begin()
    kernels = Kernels(driver, rate)
    host, data = ctypes.create_string_buffer(BYTES), c_uint64()
    driver("cuMemAlloc_v2", byref(data), c_size_t(BYTES))

    def step() -> float:
        began, scratch = time.perf_counter(), c_uint64()
        driver("cuMemcpyHtoD_v2", data, host, c_size_t(BYTES))
        driver("cuMemAlloc_v2", byref(scratch), c_size_t(BYTES))
        for _ in range(KERNELS):
            kernels.work(KERNEL_MS)
        driver("cuMemcpyDtoH_v2", host, data, c_size_t(BYTES))
        driver("cuMemFree_v2", scratch)
        driver("cuStreamSynchronize", c_void_p())
        return 1e6 * (time.perf_counter() - began)

    for _ in range(STEPS // 4):
        step()
    for _ in rounds():
        say({"step": statistics.median(step() for _ in range(STEPS))})


if __name__ == "__main__":
    main(int(sys.argv[1]))
