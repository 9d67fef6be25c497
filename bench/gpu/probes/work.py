"""The share of the GPU's time that kernels of a known length get: ten of them, or two long ones, and then a wait."""

import sys

from bench.gpu.probes.kernels import Kernels, begin, rounds, say, turns_per_second

LONG_MS = 5.0


def main(ms: float, seconds: float, rate: int) -> None:
    kernels = Kernels(begin(), rate)
    batch = 10 if ms < LONG_MS else 2

    def turn() -> None:
        for _ in range(batch):
            kernels.work(ms)
        kernels.wait()

    for _ in rounds():
        say({"share of the GPU's time": batch * ms / 10 * turns_per_second(turn, seconds)})


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
