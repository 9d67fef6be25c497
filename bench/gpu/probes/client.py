"""What a client of MPS sees of the GPU, and how much memory it gets."""

from ctypes import byref, c_int

from bench.gpu.probes.kernels import begin, say
from bench.gpu.probes.processes import NvmlDevice
from lamina.operations.verify.tenant import MIB, allocators, fill

MULTIPROCESSORS = 16
"""CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT."""


def main() -> None:
    driver, count = begin(), c_int()
    driver("cuDeviceGetAttribute", byref(count), MULTIPROCESSORS, 0)
    free, total = driver.memory()
    device = NvmlDevice(driver)
    own = device.own_mib()
    take = allocators(driver)["plain"]
    taken = fill(take, free, smallest=MIB)
    refused, full = take(64 * MIB), device.used_mib()
    driver("cuDevicePrimaryCtxRelease_v2", 0)
    say(
        {
            "multiprocessors": count.value,
            "total": total / MIB,
            "free at first": free / MIB,
            "it is listed by its PID": own is not None,
            "taken": taken / MIB,
            "error at the limit": refused,
            "a context, of the process": own or 0.0,
            "a context, of the GPU": full - device.used_mib() - taken / MIB,
        }
    )


if __name__ == "__main__":
    main()
