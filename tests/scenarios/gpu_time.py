"""Which part of its GPU's time each program of a lab gets."""

import time

from lamina_lab import simgpu
from tests.scenarios.labs import Lab

WINDOW_S = 3.0


def busy_ns(lab: Lab) -> list[int]:
    """GPU time of the process on each GPU that has one."""
    return [gpu.processes[0].busy_ns for gpu in simgpu.read(lab.machine).gpus if gpu.processes]


def percents(lab: Lab) -> list[float]:
    """Which share of a window's time each process had its GPU, from the smallest."""
    before, start = busy_ns(lab), time.monotonic_ns()
    time.sleep(WINDOW_S)  # parts of the GPU's time show in real time only
    after, passed = busy_ns(lab), time.monotonic_ns() - start
    return sorted(100 * (then - now) / passed for then, now in zip(after, before, strict=True))
