"""A step of a network as kernels of the lengths that its layers have on a V100, with the memory that it holds.

It stands for PyTorch on simulated GPUs, whose kernels compute nothing. `fill` is the part of the visible memory, in
percent, that the program takes before it begins; 0: only what the network needs.
"""

import sys
from ctypes import byref, c_size_t, c_ubyte, c_uint64

from bench.gpu.networks import CASES, blocks_bytes, kernels_ms
from bench.gpu.probes.kernels import Kernels, begin, rounds, say, turns_per_second
from lamina.operations.verify.tenant import CheckedDriver

BLOCK_BYTES = 64 << 20


def take(driver: CheckedDriver, size: int) -> None:
    """Allocates this many bytes and writes to all of them."""
    data = c_uint64()
    driver("cuMemAlloc_v2", byref(data), c_size_t(size))
    driver("cuMemsetD8_v2", data, c_ubyte(0), c_size_t(size))


def fill(driver: CheckedDriver, percent: float) -> None:
    """Takes memory until this part of what is visible is in use."""
    free, total = c_size_t(), c_size_t()
    driver("cuMemGetInfo_v2", byref(free), byref(total))
    for _ in range(int((percent / 100 * total.value - (total.value - free.value)) // BLOCK_BYTES)):
        take(driver, BLOCK_BYTES)


def main(name: str, seconds: float, rate: int, percent: float) -> None:
    case = CASES[name]
    driver = begin()
    kernels, lengths = Kernels(driver, rate), kernels_ms(case)
    if percent:  # a kernel of a simulated GPU needs all managed memory of its process, those of a network a part each
        lengths = [sum(lengths)]
    for size in blocks_bytes(case):
        take(driver, size)
    fill(driver, percent)

    def step() -> None:
        for length in lengths:
            kernels.work(length)
        kernels.wait()

    step()
    for _ in rounds():
        say({"a step": 1e6 / turns_per_second(step, seconds)})


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
