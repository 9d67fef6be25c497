"""Error codes of calls that make no sense."""

from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

from bench.gpu.probes.kernels import PTX, Event, Kernels, say
from lamina.operations.verify.tenant import CheckedDriver

FAR = 0x10
"""An address that no allocation has."""


def without_context(driver: CheckedDriver) -> dict[str, object]:
    """Before and after cuInit."""
    facts: dict[str, object] = {"before cuInit": driver.quietly("cuDeviceGetCount", byref(c_int()))}
    driver("cuInit", 0)
    facts["wait without a context"] = driver.quietly("cuCtxSynchronize")
    facts["memory without a context"] = driver.quietly("cuMemAlloc_v2", byref(c_uint64()), c_size_t(4096))
    facts["device that does not exist"] = driver.quietly("cuDeviceGet", byref(c_int()), 99)
    facts["unknown attribute"] = driver.quietly("cuDeviceGetAttribute", byref(c_int()), 9999, 0)
    return facts


def of_memory(driver: CheckedDriver) -> dict[str, object]:
    """Allocating and freeing."""
    at = c_uint64()
    facts: dict[str, object] = {
        "0 bytes": driver.quietly("cuMemAlloc_v2", byref(at), c_size_t(0)),
        "more than there is": driver.quietly("cuMemAlloc_v2", byref(at), c_size_t(1 << 46)),
        "free NULL": driver.quietly("cuMemFree_v2", c_uint64(0)),
        "free an unknown address": driver.quietly("cuMemFree_v2", c_uint64(FAR)),
        "type of an unknown address": driver.quietly("cuPointerGetAttribute", byref(c_int()), 2, c_uint64(FAR)),
    }
    driver("cuMemAlloc_v2", byref(at), c_size_t(4096))
    driver("cuMemFree_v2", at)
    facts["free twice"] = driver.quietly("cuMemFree_v2", at)
    return facts


def of_code(driver: CheckedDriver) -> dict[str, object]:
    """Modules, functions, limits."""
    module, function = c_void_p(), c_void_p()
    facts: dict[str, object] = {"code that is none": driver.quietly("cuModuleLoadData", byref(module), b"nonsense\0")}
    driver("cuModuleLoadData", byref(module), PTX.read_bytes() + b"\0")
    facts["function that is not there"] = driver.quietly("cuModuleGetFunction", byref(function), module, b"no_such")
    empty = Kernels(driver, 1).empty
    for name, threads in (("1025 threads", 1025), ("0 threads", 0)):
        facts[f"block of {name}"] = driver.quietly("cuLaunchKernel", empty, 1, 1, 1, threads, 1, 1, 0, None, None, None)
    for limit in (8, 99):
        facts[f"limit {limit} of the context"] = driver.quietly("cuCtxGetLimit", byref(c_size_t()), limit)
    return facts


def of_events(driver: CheckedDriver) -> dict[str, object]:
    """Events that were never recorded."""
    one, two = Event(driver), Event(driver)
    elapsed = driver.quietly("cuEventElapsedTime", byref(c_float()), one.handle, two.handle)
    return {"query an event that was not recorded": one.query(), "time between events that were not recorded": elapsed}


def main() -> None:
    driver = CheckedDriver()
    facts = without_context(driver)
    driver.begin()
    say({**facts, **of_memory(driver), **of_code(driver), **of_events(driver)})


if __name__ == "__main__":
    main()
