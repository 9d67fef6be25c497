"""What contexts cost in memory and time, and in which steps the driver takes memory."""

import time
from ctypes import byref, c_size_t, c_uint64, c_void_p

from bench.gpu.probes.kernels import say
from bench.gpu.probes.processes import NvmlDevice
from lamina.operations.verify.tenant import CheckedDriver


def main() -> None:
    driver = CheckedDriver()
    device = NvmlDevice(driver)
    context, second, at = c_void_p(), c_void_p(), c_uint64()
    before, began = device.used_mib(), time.perf_counter()
    driver("cuDevicePrimaryCtxRetain", byref(context), 0)
    driver("cuCtxSetCurrent", context)
    made = time.perf_counter()
    first = device.used_mib()
    facts: dict[str, object] = {
        "to make the first": 1000 * (made - began),
        "first context": first - before,
        "by its process": device.own_mib(),
    }
    driver("cuMemAlloc_v2", byref(at), c_size_t(1))
    facts["1 byte of memory"] = device.used_mib() - first
    driver("cuMemFree_v2", at)
    used, began = device.used_mib(), time.perf_counter()
    driver("cuCtxCreate_v2", byref(second), 0, 0)
    facts["to make the second"] = 1000 * (time.perf_counter() - began)
    facts["second context"] = device.used_mib() - used
    driver("cuCtxDestroy_v2", second)
    driver("cuDevicePrimaryCtxRelease_v2", 0)
    facts["left after release"] = device.used_mib() - before
    again = c_void_p()
    driver("cuDevicePrimaryCtxRetain", byref(again), 0)
    facts["same handle of the primary context"] = again.value == context.value
    say(facts)


if __name__ == "__main__":
    main()
