"""Which processes NVML lists, and what it says of this one."""

import ctypes
import os
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p, create_string_buffer

from bench.gpu.probes.kernels import begin, say
from lamina.operations.verify.tenant import NOT_KNOWN, CheckedDriver


class ListedProcess(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (("pid", c_uint), ("bytes", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint))


class NvmlDevice:
    """The GPU of the current process's context, as NVML has it."""

    def __init__(self, driver: CheckedDriver) -> None:
        text, device = create_string_buffer(32), c_int()
        driver("cuInit", 0)
        driver("cuDeviceGet", byref(device), 0)
        driver("cuDeviceGetPCIBusId", text, len(text), device)
        self._nvml, self._handle = CheckedDriver("libnvidia-ml.so.1"), c_void_p()
        self._nvml("nvmlInit_v2")
        self._nvml("nvmlDeviceGetHandleByPciBusId_v2", text, byref(self._handle))

    def used_mib(self) -> float:
        """Of the whole device."""
        memory = (c_ulonglong * 3)()
        self._nvml("nvmlDeviceGetMemoryInfo", self._handle, memory)
        return memory[2] / (1 << 20)

    def processes(self) -> tuple[int, list[ListedProcess]]:
        """NVML's code and what it lists."""
        count, found = c_uint(1024), (ListedProcess * 1024)()
        code = self._nvml.quietly("nvmlDeviceGetComputeRunningProcesses_v3", self._handle, byref(count), found)
        return code, list(found[: count.value]) if code == 0 else []

    def own_mib(self) -> float | None:
        """Of this process, where NVML tells."""
        for each in self.processes()[1]:
            if each.pid == os.getpid() and each.bytes != NOT_KNOWN:
                return each.bytes / (1 << 20)
        return None


def main() -> None:
    driver = begin()
    code, listed = NvmlDevice(driver).processes()
    own = [each for each in listed if each.pid == os.getpid()]
    say(
        {
            "code": code,
            "some process is listed": bool(listed),
            "its own PID is listed": bool(own),
            "memory is given": bool(listed) and all(each.bytes != NOT_KNOWN for each in listed),
        }
    )


if __name__ == "__main__":
    main()
