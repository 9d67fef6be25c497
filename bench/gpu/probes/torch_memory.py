"""PyTorch takes memory with one of its allocators until it is refused, frees it and takes it again."""

import os
import sys
from typing import Any

from bench.gpu.probes.kernels import say

MIB = 1 << 20
BLOCK_MIB = 64
SETTINGS = {
    "native": "backend:native",
    "expandable segments": "expandable_segments:True",
    "cudaMallocAsync": "backend:cudaMallocAsync",
}
"""Allocators by what PYTORCH_CUDA_ALLOC_CONF has to be for them."""


def fill(torch: Any) -> tuple[int, str]:
    """How many MiB are had before the refusal, and what it says."""
    held = []
    try:
        while True:
            held.append(torch.empty(BLOCK_MIB * MIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as refused:
        return len(held) * BLOCK_MIB, str(refused)


def main(allocator: str) -> None:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS[allocator]
    import torch

    free, total = torch.cuda.mem_get_info()
    taken = []
    for _ in range(2):
        mib, said = fill(torch)
        taken.append(100 * mib * MIB / free)
        torch.cuda.empty_cache()
    values = torch.ones(1024, device="cuda")
    say(
        {
            "total": total / MIB,
            "free at first": free / MIB,
            "total of the properties": torch.cuda.get_device_properties(0).total_memory / MIB,
            "taken of what was free": taken[0],
            "taken once it was freed": taken[1],
            "the refusal names the limit": f"{total / (1 << 30):.2f} GiB" in said,
            "sum after the refusal": float(values.sum()),
            "refusal": said.splitlines()[0],
        }
    )


if __name__ == "__main__":
    main(sys.argv[1])
