"""How long the launch of an empty kernel takes, and how long until it is done."""

import statistics
import time

from bench.gpu.probes.kernels import Kernels, begin, rounds, say

LAUNCHES, BATCH = 3000, 100


def times(kernels: Kernels) -> dict[str, object]:
    """Medians, in microseconds."""
    launch, both = [], []
    for number in range(LAUNCHES):
        began = time.perf_counter_ns()
        kernels.nothing()
        launch.append(time.perf_counter_ns() - began)
        if number % BATCH == BATCH - 1:
            kernels.wait()
    for _ in range(LAUNCHES // 3):
        began = time.perf_counter_ns()
        kernels.nothing()
        kernels.wait()
        both.append(time.perf_counter_ns() - began)
    return {"launch": statistics.median(launch) / 1e3, "launch and wait": statistics.median(both) / 1e3}


def main() -> None:
    kernels = Kernels(begin(), 1)
    times(kernels)
    for _ in rounds():
        say(times(kernels))


if __name__ == "__main__":
    main()
