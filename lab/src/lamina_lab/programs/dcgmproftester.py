"""Stands for NVIDIA's dcgmproftester with `-t 1004`: multiplies matrices in the tensor cores of a simulated GPU.

It prints what that program prints. The rate is the share of the GPU's time that it got, times six tenths of what a card
with these multiprocessors and this clock can do at most; a simulated GPU has no speed of its own.
"""

import argparse
import ctypes
import itertools
import os
import sys
import time
from collections.abc import Sequence

from lamina.operations.gpu_load import DriverError, LoadDriver
from lamina_lab.programs.mps_control import take_name

TENSOR = 1004
KERNEL_MS = 500
AHEAD = 4
"""Kernels that the GPU has before it at any time."""
REACHED = 0.6
"""The part of its highest rate that a multiplication reaches; on an A100, 1.89e5 of 3.12e5 gflops."""
FLOPS_PER_CLOCK = {7: 1024, 8: 2048, 9: 4096}
"""Half-precision operations of a multiprocessor in a clock, by the major compute capability."""
ATTRIBUTES = {
    "MAX_THREADS_PER_MULTIPROCESSOR": 39,
    "MULTIPROCESSOR_COUNT": 16,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
    "GLOBAL_MEMORY_BUS_WIDTH": 37,
    "MEMORY_CLOCK_RATE": 36,
}
"""By CUDA's number. The program prints the clock in MHz."""
CLOCK_RATE, ECC = 13, 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 1 if the driver refuses a call."""
    parser = argparse.ArgumentParser(prog="dcgmproftester", description="Load the tensor cores of a GPU.")
    parser.add_argument("-t", type=int, default=TENSOR, help="the field to test; only 1004, tensor cores")
    parser.add_argument("-d", type=float, default=30.0, help="seconds (default 30)")
    parser.add_argument("--no-dcgm-validation", action="store_true", help="accepted: there is no DCGM to compare with")
    options = parser.parse_args(arguments)
    if options.t != TENSOR:
        parser.error(f"only -t {TENSOR} is here")
    try:
        test(options.d)
    except DriverError as wrong:
        print(f"dcgmproftester: {wrong}", flush=True)
        return 1
    return 0


def test(seconds: float) -> None:
    """Multiply for so long, then print what the program found. Raises DriverError."""
    driver = LoadDriver()
    print("Skipping CreateDcgmGroups() since DCGM validation is disabled", flush=True)
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    driver("cuInit", 0)
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    driver("cuCtxSetCurrent", context)
    driver("cuModuleLoadData", ctypes.byref(module), b"simgpu")
    driver("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
    duration = ctypes.c_uint64(KERNEL_MS * 1_000_000)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
    highest = highest_gflops(driver)
    ends = [ctypes.c_void_p() for _ in range(AHEAD)]
    for end in ends:
        driver("cuEventCreate", ctypes.byref(end), 0)
    start = last = time.monotonic()
    for number in itertools.count():
        end = ends[number % AHEAD]
        if number >= AHEAD:
            driver("cuEventSynchronize", end)
            now = time.monotonic()
            rate = REACHED * highest * min(1.0, KERNEL_MS / 1000 / (now - last))
            print(f"Worker 0:0 [{TENSOR}]: TensorEngineActive: generated ???, dcgm 0 ({rate:.3g} gflops).", flush=True)
            last = now
        if last - start >= seconds:
            break
        driver("cuLaunchKernel", function, 1056, 1, 1, 256, 1, 1, 0, None, parameters, None)
        driver("cuEventRecord", end, None)
    driver("cuCtxSynchronize")
    describe(driver)


def highest_gflops(driver: LoadDriver) -> float:
    major = attribute(driver, ATTRIBUTES["COMPUTE_CAPABILITY_MAJOR"])
    count, clock_khz = attribute(driver, ATTRIBUTES["MULTIPROCESSOR_COUNT"]), attribute(driver, CLOCK_RATE)
    return count * clock_khz * 1e3 * FLOPS_PER_CLOCK[min(max(major, 7), 9)] / 1e9


def describe(driver: LoadDriver) -> None:
    """Print which GPU it was."""
    bus = ctypes.create_string_buffer(20)
    driver("cuDeviceGetPCIBusId", bus, len(bus), 0)
    print(f"Worker 0:0[{TENSOR}]: Message: Bus ID 0000{bus.value.decode()} mapped to cuda device ID 0")
    print("DCGM CudaContext Init completed successfully.")
    values = {name: attribute(driver, number) for name, number in ATTRIBUTES.items()}
    clock_mhz = values["MEMORY_CLOCK_RATE"] // 1000
    for name, value in (values | {"MEMORY_CLOCK_RATE": clock_mhz}).items():
        print(f"CU_DEVICE_ATTRIBUTE_{name}: {value}")
        if name == "MAX_THREADS_PER_MULTIPROCESSOR":
            print(f"CUDA_VISIBLE_DEVICES: {uuid(driver)}")
    bandwidth = 2 * clock_mhz * 1_000_000 * values["GLOBAL_MEMORY_BUS_WIDTH"] // 8
    print(f"Max Memory bandwidth: {bandwidth} bytes ({bandwidth / 1e9:.1f} GiB)")
    print(f"CU_DEVICE_ATTRIBUTE_ECC_SUPPORT: {str(bool(attribute(driver, ECC))).lower()}", flush=True)


def uuid(driver: LoadDriver) -> str:
    raw = (ctypes.c_ubyte * 16)()
    driver("cuDeviceGetUuid", raw, 0)
    text = bytes(raw).hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def attribute(driver: LoadDriver, number: int) -> int:
    value = ctypes.c_int()
    driver("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


if __name__ == "__main__":
    take_name(os.environ.get("LAMINA_LAB_PROGRAM") or sys.argv[0])
    raise SystemExit(main())
