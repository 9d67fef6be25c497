"""Two PyTorch processes of one container take memory until they are refused: together they have no more than it may."""

import subprocess
import sys

import torch

from bench.gpu.probes.kernels import say
from bench.gpu.probes.torch_memory import MIB, fill


def second() -> None:
    """The other process: says how much it has, and keeps nothing."""
    torch.empty(1, device="cuda")
    print("ready", flush=True)
    sys.stdin.readline()
    print(fill(torch)[0], flush=True)


def main() -> None:
    torch.empty(1, device="cuda")
    command = [sys.executable, "-m", "bench.gpu.probes.torch_family", "second"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        free = torch.cuda.mem_get_info()[0]
        other.stdin.write("go\n")
        other.stdin.flush()
        theirs = int(other.stdout.readline())
    say({"taken of what the first left": 100 * theirs * MIB / free, "held by the first": held.numel() / MIB})


if __name__ == "__main__":
    second() if sys.argv[1:] else main()
