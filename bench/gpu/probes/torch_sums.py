"""How long sums of large tensors take in PyTorch, many of them queued without a wait.

Memory bounds them, so the clocks of the GPU, which rise while a limit leaves it idle, do not change how long one takes.
"""

import sys
import time

import torch

from bench.gpu.probes.kernels import rounds, say

VALUES, QUEUED, WARM_UP_S = 1 << 26, 20, 1.0


def main(seconds: float) -> None:
    left, right, out = (torch.ones(VALUES, device="cuda") for _ in range(3))

    def batch() -> None:
        for _ in range(QUEUED):
            torch.add(left, right, out=out)
        torch.cuda.synchronize()

    for _ in rounds():
        warm = time.monotonic() + WARM_UP_S
        while time.monotonic() < warm:
            batch()
        began, done = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            batch()
            done += QUEUED
        say({"a sum": 1e6 * (time.monotonic() - began) / done})


if __name__ == "__main__":
    main(float(sys.argv[1]))
