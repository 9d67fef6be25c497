"""A load on a GPU: holds memory, launches kernels of a known duration, and says what it got of both.

`lamina load`, the program gpu-load of containers and the tenants of `lamina verify` are this code. It uses the driver
through ctypes and nothing else of this package, so that an image needs this file alone.
"""

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator, Sequence

AHEAD = 10
"""Kernels per batch; the program waits after each batch."""
BLOCK_MIB = 20
"""Memory is allocated in blocks of this size, as in PyTorch's allocator."""
KERNELS = b"""\
// Work that takes a time that is known beforehand. The driver compiles it for whatever GPU there is.
.version 6.0
.target sm_50
.address_size 64

// Keeps one thread of the GPU busy for as many nanoseconds.
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .u64 %wanted, %began, %now, %passed;
    .reg .pred %again;
    ld.param.u64 %wanted, [nanoseconds];
    mov.u64 %began, %globaltimer;
WAIT:
    mov.u64 %now, %globaltimer;
    sub.u64 %passed, %now, %began;
    setp.lt.u64 %again, %passed, %wanted;
    @%again bra WAIT;
    ret;
}

.visible .entry empty()
{
    ret;
}
"""
Driver = Callable[..., None]
"""Calls a function of the driver by its name, and raises where that fails."""


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


class Spin:
    """Batches of kernels of a given length in milliseconds, in the current context."""

    def __init__(self, driver: Driver, kernel_ms: float) -> None:
        self._driver, self.kernel_ms = driver, kernel_ms
        self._function = ctypes.c_void_p()
        module = ctypes.c_void_p()
        driver("cuModuleLoadData", ctypes.byref(module), KERNELS)
        driver("cuModuleGetFunction", ctypes.byref(self._function), module, b"spin")
        self._duration = ctypes.c_uint64(int(kernel_ms * 1e6))

    def batch(self) -> None:
        """Launch the kernels of a batch, and wait for them."""
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(self._duration))
        for _ in range(AHEAD):
            self._driver("cuLaunchKernel", self._function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
        self._driver("cuCtxSynchronize")

    def percent(self, kernels: int, seconds: float) -> float:
        """The share of the GPU's time that these kernels took."""
        return kernels * self.kernel_ms / 10 / seconds


class Load:
    """A load on the GPU with this ordinal, with a context of its own."""

    def __init__(self, gpu: int) -> None:
        self.gpu, self.held_mib = gpu, 0
        self._driver, self._blocks = LoadDriver(), list[ctypes.c_uint64]()
        context = ctypes.c_void_p()
        self._driver("cuInit", 0)
        self._driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), gpu)
        self._driver("cuCtxSetCurrent", context)

    def memory_mib(self) -> tuple[int, int]:
        """What the GPU has free and in all, as the driver says it to this program."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._driver("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value >> 20, total.value >> 20

    def hold(self, mib: int) -> None:
        """Allocate memory and write each block's number to it; `held_mib` is how much it got. Raises DriverError."""
        for start in range(0, mib, BLOCK_MIB):
            block, size = ctypes.c_uint64(), min(BLOCK_MIB, mib - start)
            self._driver("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(size << 20))
            self._driver("cuMemsetD32_v2", block, len(self._blocks), ctypes.c_size_t(1))
            self._blocks.append(block)
            self.held_mib += size

    def work(self, seconds: float, kernel_ms: float, every: float = 0.0) -> Iterator[str]:
        """Keep the GPU busy. A line says what share of its time that was, at the end and, if not 0, each `every` s.
        Raises DriverError, also where memory has lost its data."""
        spin, kernels = Spin(self._driver, kernel_ms), 0
        start = last = time.monotonic()
        while (now := time.monotonic()) - start < seconds:
            spin.batch()
            kernels += AHEAD
            if every and now - last >= every:
                last = now
                yield self._line(spin, kernels, time.monotonic() - start)
        yield self._line(spin, kernels, time.monotonic() - start)
        self._check()

    def _line(self, spin: Spin, kernels: int, seconds: float) -> str:
        work = f"{kernels} kernels of {spin.kernel_ms:g} ms"
        return f"GPU {self.gpu}: {spin.percent(kernels, seconds):.1f} % of {seconds:.1f} s ({work})"

    def _check(self) -> None:
        for number, block in enumerate(self._blocks):
            found = ctypes.c_uint32()
            self._driver("cuMemcpyDtoH_v2", ctypes.byref(found), block, ctypes.c_size_t(4))
            if found.value != number:
                raise DriverError(f"block {number} of {len(self._blocks)} has lost its data")


def main(arguments: Sequence[str] | None = None) -> int:
    """gpu-load. Returns 1 if the driver refuses a call."""
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
        load = Load(options.gpu)
        load.hold(options.memory_mib)
        for line in load.work(options.seconds, options.kernel_ms, options.every):
            print(line, flush=True)
    except DriverError as wrong:
        print(f"gpu-load: {wrong}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
