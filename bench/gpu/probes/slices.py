"""How long a process pauses for another one that is at work on the same GPU."""

import statistics
import subprocess
import sys
import time

from bench.gpu.probes.kernels import Kernels, begin, say

KERNEL_MS = 0.1
SECONDS = 3.0
PAUSE_MS = 0.3
"""More than any kernel takes longer when nothing else runs."""


def load(rate: int) -> None:
    """Keeps the GPU busy until standard input ends the process."""
    kernels = Kernels(begin(), rate)
    print("ready", flush=True)
    while True:
        for _ in range(100):
            kernels.work(KERNEL_MS)
        kernels.wait()


def measured(kernels: Kernels, seconds: float) -> list[float]:
    """Milliseconds of kernels that are launched one at a time."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        took.append(kernels.timed(KERNEL_MS))
    return took


def main(rate: int) -> None:
    kernels = Kernels(begin(), rate)
    alone = statistics.median(measured(kernels, 0.5))
    command = [sys.executable, "-m", "bench.gpu.probes.slices", str(rate), "load"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            if other.stdout.readline() != "ready\n":
                raise SystemExit("the other process did not start")
            took = measured(kernels, SECONDS)
        finally:
            other.kill()
    pauses = [each - alone for each in took if each - alone > PAUSE_MS]
    say(
        {
            "kernel alone": alone,
            "pause for the other process": statistics.median(pauses) if pauses else 0.0,
            "longest pause": max(pauses, default=0.0),
            "share of the GPU's time": 100 * len(took) * KERNEL_MS / sum(took),
        }
    )


if __name__ == "__main__":
    load(int(sys.argv[1])) if sys.argv[2:] else main(int(sys.argv[1]))
