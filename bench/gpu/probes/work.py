"""The share of the GPU's time that kernels of a known length get: ten of them, or two long ones, and then a wait."""

import sys
import time

from bench.gpu.probes.kernels import Kernels, begin, say

WARM_UP_S = 1.0
LONG_MS = 5.0


def main(ms: float, seconds: float, rate: int) -> None:
    kernels = Kernels(begin(), rate)
    batch = 10 if ms < LONG_MS else 2

    def turn() -> None:
        for _ in range(batch):
            kernels.work(ms)
        kernels.wait()

    end = time.monotonic() + WARM_UP_S
    while time.monotonic() < end:
        turn()
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        turn()
        done += batch
    say({"share of the GPU's time": done * ms / 10 / (time.monotonic() - began)})


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
