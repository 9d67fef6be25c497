"""How long a kernel takes that has work for all processors of the GPU, as a client of MPS that has a part of them.

The first argument says what the program does to that part before it uses the GPU: `kept`, `removed` or `raised`.
"""

import os
import statistics
import sys

from bench.gpu.probes.kernels import Event, Kernels, begin, rounds, say, warm_up
from lamina.agent.mps.clients import THREADS

BLOCKS, KERNEL_MS, TRIES = 132 * 64, 0.2, 20


def change(what: str) -> None:
    """What a tenant may do to its own environment."""
    if what == "removed":
        os.environ.pop(THREADS, None)
    elif what == "raised":
        os.environ[THREADS] = "100"


def main(what: str, rate: int) -> None:
    change(what)
    driver = begin()
    kernels, start, end = Kernels(driver, rate), Event(driver), Event(driver)

    def took() -> float:
        start.record()
        kernels.work(KERNEL_MS, blocks=BLOCKS)
        end.record()
        end.wait()
        return 1000 * end.since(start)

    for _ in rounds():
        warm_up(took)
        say({"a kernel": statistics.median(took() for _ in range(TRIES))})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
