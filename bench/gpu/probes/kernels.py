"""Kernels whose length is known, events, and the line that ends a probe."""

import ctypes
import json
import sys
import time
from collections.abc import Callable, Iterator
from ctypes import byref, c_float, c_uint64, c_void_p
from pathlib import Path

from bench.gpu.programs import READY
from lamina.operations.verify.tenant import CheckedDriver

WARM_UP_S = 1.0
PTX = Path(__file__).with_name("work.ptx")


def has(driver: CheckedDriver, function: str) -> bool:
    """Whether the driver has a function."""
    return hasattr(driver.library, function)


class Kernels:
    """The kernels of work.ptx in the current context. `rate` is how many steps the GPU does in a microsecond."""

    def __init__(self, driver: CheckedDriver, rate: int) -> None:
        self._driver = driver
        module = c_void_p()
        driver("cuModuleLoadData", byref(module), PTX.read_bytes() + b"\0")
        self.spin, self.empty = c_void_p(), c_void_p()
        driver("cuModuleGetFunction", byref(self.spin), module, b"spin")
        driver("cuModuleGetFunction", byref(self.empty), module, b"empty")
        self._rate = c_uint64(rate)

    def work(self, ms: float, stream: c_void_p | None = None, *, blocks: int = 1) -> None:
        """Launches a kernel whose blocks work for so many milliseconds each."""
        duration = c_uint64(int(ms * 1e6))
        parameters = (c_void_p * 2)(ctypes.addressof(duration), ctypes.addressof(self._rate))
        self._driver("cuLaunchKernel", self.spin, blocks, 1, 1, 1, 1, 1, 0, stream, parameters, None)

    def nothing(self) -> None:
        """Launches the empty kernel."""
        self._driver("cuLaunchKernel", self.empty, 1, 1, 1, 1, 1, 1, 0, None, None, None)

    def wait(self) -> None:
        """Until all is done."""
        self._driver("cuCtxSynchronize")

    def timed(self, ms: float) -> float:
        """How many milliseconds of the clock a kernel takes together with waiting for it."""
        began = time.perf_counter()
        self.work(ms)
        self.wait()
        return 1000 * (time.perf_counter() - began)


class Event:
    """A CUDA event."""

    def __init__(self, driver: CheckedDriver) -> None:
        self._driver = driver
        self.handle = c_void_p()
        driver("cuEventCreate", byref(self.handle), 0)

    def record(self, stream: c_void_p | None = None) -> None:
        """Into a stream."""
        self._driver("cuEventRecord", self.handle, stream)

    def query(self) -> int:
        """The driver's code: 0 done, 600 not yet."""
        return self._driver.quietly("cuEventQuery", self.handle)

    def wait(self) -> None:
        """Until it is recorded."""
        self._driver("cuEventSynchronize", self.handle)

    def since(self, earlier: "Event") -> float:
        """Milliseconds between two events."""
        ms = c_float()
        function = "cuEventElapsedTime_v2" if has(self._driver, "cuEventElapsedTime_v2") else "cuEventElapsedTime"
        self._driver(function, byref(ms), earlier.handle, self.handle)
        return ms.value


def begin() -> CheckedDriver:
    """The driver with a context."""
    driver = CheckedDriver()
    driver.begin()
    return driver


def rounds() -> Iterator[None]:
    """Says that the probe is ready, and ends a wait for each line of the input: it is asked again and again."""
    print(READY, end="", flush=True)
    for _ in sys.stdin:
        yield


def warm_up(turn: Callable[[], object]) -> None:
    """Does turns of work for a second, until the clocks of the GPU are up."""
    warm = time.monotonic() + WARM_UP_S
    while time.monotonic() < warm:
        turn()


def turns_per_second(turn: Callable[[], None], seconds: float) -> float:
    """How often a turn of work was done in a second, after a second to warm up."""
    warm_up(turn)
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        turn()
        done += 1
    return done / (time.monotonic() - began)


def say(facts: dict[str, object]) -> None:
    """What the probe found out."""
    print(json.dumps(facts), flush=True)
