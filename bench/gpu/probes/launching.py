"""How long the launch of an empty kernel takes, and how long until it is done."""

import statistics
import time

from bench.gpu.probes.kernels import Kernels, begin, say

LAUNCHES, BATCH = 3000, 100


def main() -> None:
    kernels = Kernels(begin(), 1)
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
    say({"launch": statistics.median(launch) / 1e3, "launch and wait": statistics.median(both) / 1e3})


if __name__ == "__main__":
    main()
