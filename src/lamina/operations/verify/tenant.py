"""A tenant: a process that is held to limits and says what it could do. It knows nothing of how it is held.

Run as `python -m lamina.operations.verify.tenant WHAT ARGUMENTS`; the answer is one JSON object on standard output.
It uses the driver through ctypes, and the load of this package.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from pathlib import Path

from lamina.operations.gpu_load import AHEAD, Spin

MIB = 1 << 20
NOT_KNOWN = (1 << 64) - 1
STEPS = (64 * MIB, 2 * MIB, *(MIB >> power for power in range(21)))
"""Sizes that are tried until refused, the smaller ones once: together they leave nothing that could be had."""
PITCHED_ROW = 1 << 16
SMALL = (700_000, 513, 1)
"""Sizes that share blocks of the driver and do not divide them."""


class CheckedDriver:
    """The driver's functions, each checked; those named in `quietly` return their code."""

    def __init__(self, path: str = "libcuda.so.1") -> None:
        self.library = ctypes.CDLL(path)

    def __call__(self, function: str, *arguments: object) -> None:
        if code := self.quietly(function, *arguments):
            raise SystemExit(f"{function} failed with error {code}")

    def quietly(self, function: str, *arguments: object) -> int:
        code: int = getattr(self.library, function)(*arguments)
        return code

    def begin(self) -> None:
        """Makes a context on the only device."""
        context = c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", byref(context), 0)
        self("cuCtxSetCurrent", context)

    def memory(self) -> tuple[int, int]:
        """Bytes free and in all."""
        free, total = c_size_t(), c_size_t()
        self("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value


class _OnDevice(ctypes.Structure):
    """CUmemAllocationProp for pinned memory on device 0."""

    _fields_ = (("type", c_int), ("handles", c_int), ("location", c_int), ("device", c_int), ("rest", c_uint64 * 2))


class _Array(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR."""

    _fields_ = (("width", c_size_t), ("height", c_size_t), ("format", c_uint), ("channels", c_uint))


def allocators(driver: CheckedDriver) -> dict[str, Callable[[int], int]]:
    """By kind of memory: a function that asks for so many bytes and gives the driver's answer."""
    at = c_uint64()

    def plain(size: int) -> int:
        return driver.quietly("cuMemAlloc_v2", byref(at), c_size_t(size))

    def pitched(size: int) -> int:
        rows = max(1, size // PITCHED_ROW)
        return driver.quietly(
            "cuMemAllocPitch_v2", byref(at), byref(c_size_t()), c_size_t(PITCHED_ROW), c_size_t(rows), 4
        )

    def physical(size: int) -> int:
        return driver.quietly("cuMemCreate", byref(at), c_size_t(size), byref(_OnDevice(1, 0, 1, 0)), c_ulonglong(0))

    def array(size: int) -> int:
        return driver.quietly(
            "cuArrayCreate_v2", byref(c_void_p()), byref(_Array(PITCHED_ROW, size // PITCHED_ROW, 1, 1))
        )

    return {
        "plain": plain,
        "managed": lambda size: driver.quietly("cuMemAllocManaged", byref(at), c_size_t(size), 1),
        "pitched": pitched,
        "pool": lambda size: driver.quietly("cuMemAllocAsync", byref(at), c_size_t(size), None),
        "virtual": physical,
        "array": array,
        "small": plain,
    }


def fill(take: Callable[[int], int], most: int, smallest: int) -> int:
    """Takes all it can get, at most a little over `most` bytes; the bytes that it got."""
    got = 0
    for size in STEPS:
        if size < smallest:
            break
        while got <= most and take(size) == 0:
            got += size
            if size < 2 * MIB:
                break
    return got


def fill_small(take: Callable[[int], int], most: int) -> int:
    """The same with small sizes in turns, until even the smallest is refused."""
    got = 0
    for first in range(len(SMALL)):
        while got <= most and all(take(size) == 0 for size in SMALL[first:]):
            got += sum(SMALL[first:])
    return got


def memory(kind: str, limit: str) -> dict[str, object]:
    """Fills the memory with one kind, then waits for a line so that the driver's own figures can be read."""
    driver = CheckedDriver()
    driver.begin()
    free, total = driver.memory()
    take, most = allocators(driver)[kind], int(limit) + 512 * MIB
    smallest = 1 if kind in ("plain", "managed") else 2 * MIB
    got = fill_small(take, most) if kind == "small" else fill(take, most, smallest)
    refused = take(2 * MIB)
    print(json.dumps({"context": total - free, "got": got, "refused": refused, "free": driver.memory()[0]}), flush=True)
    sys.stdin.readline()
    return {}


def views() -> dict[str, object]:
    """What CUDA and NVML tell of the device's memory."""
    driver = CheckedDriver()
    driver.begin()
    total, count = c_size_t(), c_int()
    driver("cuDeviceTotalMem_v2", byref(total), 0)
    driver("cuDeviceGetCount", byref(count))
    nvml = CheckedDriver("libnvidia-ml.so.1")
    handle, figures, processes, devices = c_void_p(), (c_ulonglong * 3)(), c_uint(0), c_uint()
    nvml("nvmlInit_v2")
    nvml("nvmlDeviceGetCount_v2", byref(devices))
    nvml("nvmlDeviceGetHandleByIndex_v2", 0, byref(handle))
    nvml("nvmlDeviceGetMemoryInfo", handle, figures)
    nvml.quietly("nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(processes), None)
    return {
        "cuMemGetInfo": driver.memory()[1], "cuDeviceTotalMem": total.value, "NVML": figures[0],
        "devices": count.value, "NVML devices": devices.value, "processes": processes.value,
    }  # fmt: skip


def versions() -> dict[str, object]:
    """The version of the driver, and the newest CUDA that it supports: 12040 is 12.4."""
    driver = CheckedDriver()
    driver.begin()
    nvml = CheckedDriver("libnvidia-ml.so.1")
    cuda, text = c_int(), ctypes.create_string_buffer(80)
    driver("cuDriverGetVersion", byref(cuda))
    nvml("nvmlInit_v2")
    nvml("nvmlSystemGetDriverVersion", text, c_uint(len(text)))
    return {"driver": text.value.decode(errors="replace"), "cuda": cuda.value}


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (("pid", c_uint), ("bytes", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint))


def figures(uuid: str) -> dict[str, object]:
    """Bytes that each process holds on a GPU, by pid, as NVML has it."""
    nvml = CheckedDriver("libnvidia-ml.so.1")
    handle, count, found = c_void_p(), c_uint(1024), (_Process * 1024)()
    nvml("nvmlInit_v2")
    nvml("nvmlDeviceGetHandleByUUID", uuid.encode(), byref(handle))
    nvml("nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(count), found)
    return {"processes": {str(one.pid): one.bytes for one in found[: count.value] if one.bytes != NOT_KNOWN}}


def compute(milliseconds: str, warm_up: str, seconds: str) -> dict[str, object]:
    """Launches kernels of a known time, a batch and then a wait.

    `percent` is the share of the time that they took if each took as long as it should; `kernel_ms` is the shortest
    average of a batch, which shows whether they did.
    """
    driver = CheckedDriver()
    driver.begin()
    spin = Spin(driver, float(milliseconds))
    end = time.monotonic() + float(warm_up)
    while time.monotonic() < end:
        spin.batch()
    start, done, shortest = time.monotonic(), 0, float("inf")
    now = start
    while now - start < float(seconds):
        spin.batch()
        done += AHEAD
        before, now = now, time.monotonic()
        shortest = min(shortest, now - before)
    return {"percent": spin.percent(done, now - start), "kernel_ms": shortest * 1000 / AHEAD}


def escape(kind: str, limit: str, driver_path: str) -> dict[str, object]:
    """Tries to get memory over the limit by one kind of escape; the bytes that it got, or why this does not work."""
    if kind == "child":
        return _again(dict(os.environ), limit, driver_path)
    if kind == "no preload":
        stripped = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        stripped["LD_LIBRARY_PATH"] = str(Path(driver_path).parent)
        return _again(stripped, limit, driver_path)
    if kind == "fork" and (child := os.fork()) != 0:
        os.waitpid(child, 0)
        os._exit(0)
    driver = CheckedDriver(driver_path if kind == "absolute path" else "libcuda.so.1")
    driver.begin()
    free, total = driver.memory()
    at, function = c_uint64(), c_void_p()
    take = allocators(driver)["plain"]
    if kind == "cuGetProcAddress":
        driver("cuGetProcAddress_v2", b"cuMemAlloc", byref(function), 12000, c_uint64(0), byref(c_int()))
        found = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t)(function.value or 0)
        take = lambda size: found(ctypes.addressof(at), size)  # noqa: E731
    if kind == "per-thread stream":
        take = lambda size: driver.quietly("cuMemAllocAsync_ptsz", byref(at), c_size_t(size), None)  # noqa: E731
    return {"context": total - free, "got": fill(take, int(limit) + 512 * MIB, 2 * MIB)}


def _again(variables: dict[str, str], *arguments: str) -> dict[str, object]:
    command = [sys.executable, "-m", "lamina.operations.verify.tenant", "escape", "named", *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    answer: dict[str, object] = json.loads(done.stdout) if done.returncode == 0 else {"why": done.stderr.strip()[-200:]}
    return answer


TASKS: dict[str, Callable[..., dict[str, object]]] = {
    "memory": memory, "views": views, "versions": versions, "figures": figures, "compute": compute, "escape": escape,
}  # fmt: skip

if __name__ == "__main__":
    if answer := TASKS[sys.argv[1]](*sys.argv[2:]):
        print(json.dumps(answer), flush=True)
