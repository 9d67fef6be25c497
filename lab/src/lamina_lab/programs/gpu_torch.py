"""Stands for a small PyTorch program: one tensor of 100000 x 3100 floats on the GPU.

It makes the same driver calls as PyTorch: a context, and the tensor's 1,240,000,000 bytes in blocks of 2 MiB. It
imports only the standard library, because it is copied to where containers look for it.
"""

import ctypes
import sys

BLOCK = 2 << 20


def load() -> ctypes.CDLL | None:
    """The driver, or None if there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def check(driver: ctypes.CDLL, code: int) -> None:
    """Raise PyTorch's error if the driver refuses a call."""
    if code == 0:
        return
    text = ctypes.c_char_p()
    driver.cuGetErrorString(code, ctypes.byref(text))
    reason = text.value.decode() if text.value else "unrecognized error code"
    raise RuntimeError(
        f"CUDA error: {reason}\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
        "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1."
    )


def main() -> int:
    """Run the program. Returns 1 if there is no GPU."""
    driver = load()
    count = ctypes.c_int()
    if driver is None or driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or not count.value:
        print("GPU is not available", flush=True)
        return 1
    name = ctypes.create_string_buffer(256)
    check(driver, driver.cuDeviceGetName(name, len(name), 0))
    print(f"GPU is available with {name.value.decode()}", flush=True)
    context, tensor = ctypes.c_void_p(), ctypes.c_uint64()
    check(driver, driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(driver, driver.cuCtxSetCurrent(context))
    size = (100000 * 3100 * 4 + BLOCK - 1) // BLOCK * BLOCK
    check(driver, driver.cuMemAlloc_v2(ctypes.byref(tensor), ctypes.c_size_t(size)))
    check(driver, driver.cuMemsetD32_v2(tensor, 0, ctypes.c_size_t(size // 4)))
    check(driver, driver.cuCtxSynchronize())
    print(f"Tensor of {size} bytes is on the GPU", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
