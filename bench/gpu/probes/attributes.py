"""Attributes of the device, of a function and of the context, by their numbers in cuda.h."""

from ctypes import byref, c_int, c_size_t

from bench.gpu.probes.kernels import Kernels, begin, say

DEVICE = range(1, 146)
PLACE = (33, 34, 50)
"""Where the card is on the bus, which differs from machine to machine."""
FUNCTION = {"PTX version": 5, "binary version": 6, "most threads of a block": 0}
LIMITS = range(8)


def main() -> None:
    driver = begin()
    facts: dict[str, object] = {}
    value, size = c_int(), c_size_t()
    for number in DEVICE:
        if number not in PLACE:
            code = driver.quietly("cuDeviceGetAttribute", byref(value), number, 0)
            facts[f"device attribute {number}"] = f"error {code}" if code else value.value
    spin = Kernels(driver, 1).spin
    for name, number in FUNCTION.items():
        code = driver.quietly("cuFuncGetAttribute", byref(value), number, spin)
        facts[f"function: {name}"] = f"error {code}" if code else value.value
    for number in LIMITS:
        code = driver.quietly("cuCtxGetLimit", byref(size), number)
        facts[f"limit {number} of the context"] = f"error {code}" if code else size.value
    say(facts)


if __name__ == "__main__":
    main()
