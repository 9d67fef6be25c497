"""What cuGetProcAddress says of names that it does not have, or not for a version."""

from ctypes import byref, c_int, c_uint64, c_void_p

from bench.gpu.probes.kernels import begin, has, say
from lamina.operations.verify.tenant import CheckedDriver

KEPT = 0x10
"""What is in the pointer before the call."""
CASES = {
    "unknown name": (b"cuNoSuchFunction", 11040),
    "name newer than the version": (b"cuMemAllocAsync", 11010),
    "known name, version 0": (b"cuMemAlloc", 0),
    "known name, version of the far future": (b"cuMemAlloc", 99000),
    "name with its suffix": (b"cuMemAlloc_v2", 11040),
    "known name": (b"cuMemAlloc", 11040),
    "empty name": (b"", 11040),
}


def pointer_word(pointer: c_void_p) -> str:
    """What the call left in the pointer."""
    return "NULL" if not pointer.value else "as it was" if pointer.value == KEPT else "a function"


def lookup(driver: CheckedDriver) -> dict[str, object]:
    """Codes, pointers and statuses of both versions of the call."""
    facts: dict[str, object] = {}
    for case, (name, version) in CASES.items():
        if has(driver, "cuGetProcAddress"):
            pointer = c_void_p(KEPT)
            facts[f"{case}, code"] = driver.quietly("cuGetProcAddress", name, byref(pointer), version, c_uint64(0))
            facts[f"{case}, pointer"] = pointer_word(pointer)
        if has(driver, "cuGetProcAddress_v2"):
            pointer, status = c_void_p(KEPT), c_int(-1)
            code = driver.quietly("cuGetProcAddress_v2", name, byref(pointer), version, c_uint64(0), byref(status))
            facts[f"{case}, code of v2"] = code
            facts[f"{case}, pointer of v2"] = pointer_word(pointer)
            facts[f"{case}, status of v2"] = status.value
    return facts


if __name__ == "__main__":
    say(lookup(begin()))
