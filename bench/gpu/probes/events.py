"""When the driver says that an event is recorded."""

import sys
import time
from ctypes import byref, c_void_p

from bench.gpu.probes.kernels import Event, Kernels, begin, say

WORK_MS = 20.0
TRIES = 20


def main(rate: int) -> None:
    driver = begin()
    kernels = Kernels(driver, rate)
    kernels.timed(WORK_MS)
    first, last, other = Event(driver), Event(driver), Event(driver)
    one, two = c_void_p(), c_void_p()
    for stream in (one, two):
        driver("cuStreamCreate", byref(stream), 1)  # does not wait for the default stream
    first.record(one)
    kernels.work(WORK_MS, one)
    last.record(one)
    facts: dict[str, object] = {"query while the work runs": last.query()}
    other.record(two)
    other.wait()
    facts["query while another stream's event is done"] = last.query()
    last.wait()
    facts["query after the wait"] = last.query()
    facts["between records around 20 ms of work"] = last.since(first)
    waits = []
    for _ in range(TRIES):
        kernels.wait()
        began = time.perf_counter()
        first.record(one)
        last.record(one)
        while last.query() != 0:
            pass
        waits.append(1000 * (time.perf_counter() - began))
    facts["until an idle stream's record is done"] = min(waits)
    facts["between records without work"] = last.since(first)
    say(facts)


if __name__ == "__main__":
    main(int(sys.argv[1]))
