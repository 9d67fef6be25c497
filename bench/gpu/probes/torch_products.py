"""The share of the GPU's time that products of matrices get in PyTorch, many of them queued without a wait.

A product's own time is that between two events around it, so that clocks that rise under a limit do not count as more
time.
"""

import statistics
import sys
import time

import torch

from bench.gpu.probes.kernels import say

SIZE, QUEUED, WARM_UP_S = 4096, 20, 1.0


def main(seconds: float) -> None:
    left, right = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    took = []

    def batch() -> None:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for number in range(QUEUED):
            if number == QUEUED // 2:
                start.record()
            left @ right
            if number == QUEUED // 2:
                end.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(end) / 1000)

    warm = time.monotonic() + WARM_UP_S
    while time.monotonic() < warm:
        batch()
    took.clear()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        batch()
    passed, each = time.monotonic() - began, statistics.median(took)
    done = QUEUED * len(took)
    say(
        {
            "share of the GPU's time": 100 * done * each / passed,
            "a product": 1e6 * each,
            "products in 1 s": done / passed,
        }
    )


if __name__ == "__main__":
    main(float(sys.argv[1]))
