"""How long a step of training takes in PyTorch: a small transformer, backward and an optimizer, as programs have it.

With few tokens in a step the launches limit it, and with many the GPU.
"""

import statistics
import sys
import time
from collections.abc import Callable

from bench.gpu.probes.kernels import rounds, say

WIDTH = 512
SIZES = {"a step limited by launches": (16, 128), "a step limited by the GPU": (64, 512)}
"""Sequences in a step, and the tokens of each."""
WARM_UP = 10


def training(batch: int, tokens: int) -> Callable[[], float]:
    """A step of training, which says how many microseconds it took."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(batch, tokens, WIDTH, device="cuda")

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - began)

    return step


def main(steps: int) -> None:
    kinds = {name: training(*size) for name, size in SIZES.items()}
    for step in kinds.values():
        for _ in range(WARM_UP):
            step()
    for _ in rounds():
        say({name: statistics.median(step() for _ in range(steps)) for name, step in kinds.items()})


if __name__ == "__main__":
    main(int(sys.argv[1]))
