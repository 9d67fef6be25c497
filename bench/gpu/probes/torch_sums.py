"""How long sums of large tensors take in PyTorch, many of them queued without a wait.

Memory bounds them, so the clocks of the GPU, which rise while a limit leaves it idle, do not change how long one takes.
"""

import sys

import torch

from bench.gpu.probes.kernels import rounds, say, turns_per_second

VALUES, QUEUED = 1 << 26, 20


def main(seconds: float) -> None:
    left, right, out = (torch.ones(VALUES, device="cuda") for _ in range(3))

    def batch() -> None:
        for _ in range(QUEUED):
            torch.add(left, right, out=out)
        torch.cuda.synchronize()

    for _ in rounds():
        say({"a sum": 1e6 / (QUEUED * turns_per_second(batch, seconds))})


if __name__ == "__main__":
    main(float(sys.argv[1]))
