"""gpu-load: keeps a GPU busy and reports which share of its time it got."""

import argparse
import ctypes
import time
from collections.abc import Sequence

AHEAD = 10
"""Kernels per batch; the program waits after each batch."""
BLOCK_MIB = 20
"""Memory is allocated in blocks of this size, as in PyTorch's allocator."""


class DriverError(Exception):
    """The driver refused a call; the message has the call and the error."""


class LoadDriver:
    """The driver calls that a load needs, with error checks."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as wrong:
            raise DriverError(f"cannot load the driver: {wrong}") from wrong

    def __call__(self, function: str, *arguments: object) -> None:
        """Call a function of the driver. Raises DriverError if it fails."""
        code = getattr(self._library, function)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            reason = text.value.decode() if text.value else "unknown"
            raise DriverError(f"{function} failed with error {code}: {reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 1 if the driver refuses a call."""
    parser = argparse.ArgumentParser(
        prog="gpu-load", description="Keep a GPU busy and print the share of its time that was used."
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--kernel-ms", type=float, default=1.0, help="duration of one kernel (default 1)")
    parser.add_argument("--memory-mib", type=int, default=0, help="memory to hold in the meantime")
    parser.add_argument("--gpu", type=int, default=0, help="ordinal of the GPU (default 0)")
    parser.add_argument(
        "--every", type=float, default=0.0, help="interval in seconds at which to print the share so far"
    )
    options = parser.parse_args(arguments)
    try:
        run(options)
    except DriverError as wrong:
        print(f"gpu-load: {wrong}", flush=True)
        return 1
    return 0


def run(options: argparse.Namespace) -> None:
    """Load the GPU as the options say. Raises DriverError."""
    driver = LoadDriver()
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    driver("cuInit", 0)
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), options.gpu)
    driver("cuCtxSetCurrent", context)
    blocks = hold(driver, options.memory_mib)
    driver("cuModuleLoadData", ctypes.byref(module), b"simgpu")
    driver("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
    duration = ctypes.c_uint64(int(options.kernel_ms * 1e6))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
    start = last = time.monotonic()
    kernels = 0
    while (now := time.monotonic()) - start < options.seconds:
        for _ in range(AHEAD):
            driver("cuLaunchKernel", function, 1056, 1, 1, 256, 1, 1, 0, None, parameters, None)
        driver("cuCtxSynchronize")
        kernels += AHEAD
        if options.every and now - last >= options.every:
            last = now
            report(options, kernels, time.monotonic() - start)
    report(options, kernels, time.monotonic() - start)
    check(driver, blocks)


def hold(driver: LoadDriver, mib: int) -> list[ctypes.c_uint64]:
    """Allocate memory and write each block's number to it. Raises DriverError."""
    blocks: list[ctypes.c_uint64] = []
    for start in range(0, mib, BLOCK_MIB):
        block = ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(min(BLOCK_MIB, mib - start) << 20))
        driver("cuMemsetD32_v2", block, len(blocks), ctypes.c_size_t(1))
        blocks.append(block)
    return blocks


def check(driver: LoadDriver, blocks: list[ctypes.c_uint64]) -> None:
    """Raises DriverError if a block has lost its data."""
    for number, block in enumerate(blocks):
        found = ctypes.c_uint32()
        driver("cuMemcpyDtoH_v2", ctypes.byref(found), block, ctypes.c_size_t(4))
        if found.value != number:
            raise DriverError(f"block {number} of {len(blocks)} has lost its data")


def report(options: argparse.Namespace, kernels: int, seconds: float) -> None:
    """Print the share of the GPU's time so far."""
    share = kernels * options.kernel_ms / 10 / seconds
    work = f"{kernels} kernels of {options.kernel_ms:g} ms"
    print(f"GPU {options.gpu}: {share:.1f} % of {seconds:.1f} s ({work})", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
