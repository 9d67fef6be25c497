"""What each client does here: it takes memory until it is refused, or launches kernels and says how long that took."""

import sys
import time
from collections.abc import Callable
from typing import Any

MIB = 1 << 20
STEP_MIB = 32


def fill(take: Callable[[int], Any], refused: type[Exception]) -> None:
    """Takes and keeps blocks of 32 MiB until one is refused, says so and waits."""
    held = []
    try:
        while True:
            held.append(take(STEP_MIB * MIB))
    except refused as error:
        assert "OUT_OF_MEMORY" in str(error), error
    print("full", len(held), STEP_MIB, flush=True)
    input()


def work(launch: Callable[[], Any], wait: Callable[[], Any], before: int, count: int) -> None:
    """Launches a kernel `before` times, then `count` times, and prints the ms until the latter are done."""
    for launches in (before, count):
        begin = time.monotonic()
        for _ in range(launches):
            launch()
        wait()
    print(round(1000 * (time.monotonic() - begin)))


def run(allocators: dict[str, Callable[[int], Any]], refused: type[Exception], launch: Any, wait: Any) -> None:
    """By the program's arguments: `fill ALLOCATOR`, or `work BEFORE COUNT`."""
    if sys.argv[1] == "fill":
        fill(allocators[sys.argv[2]], refused)
    else:
        work(launch, wait, int(sys.argv[2]), int(sys.argv[3]))
