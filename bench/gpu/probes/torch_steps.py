"""How long a step of training takes in PyTorch: a small transformer, backward and an optimizer, as programs have it."""

import statistics
import sys
import time

import torch

from bench.gpu.probes.kernels import say

WIDTH, TOKENS, BATCH = 512, 128, 16
WARM_UP = 10


def main(steps: int) -> None:
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(BATCH, TOKENS, WIDTH, device="cuda")

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - began)

    for _ in range(WARM_UP):
        step()
    say({"step": statistics.median(step() for _ in range(steps))})


if __name__ == "__main__":
    main(int(sys.argv[1]))
