"""What processes of one container cost each other: pairs of cuMemAlloc and cuMemFree.

Pairs in a second are those in a second of CPU time, times the cores that so many processes can use, so that other work
on the machine does not count.
"""

import os
from pathlib import Path

from bench.facade.calls import SPAN as COMPARED_SPAN
from bench.facade.calls import ask, compare, up_to
from bench.machine import Bench, workers
from bench.measures import Report, alternate

AT_ONCE = (1, 4, 16, 64)
IDLE = (0, 15, 63, 255)
SPAN = 0.2
CORES = os.cpu_count() or 1


def measure(report: Report, calls: Path, start: Path, bench: Bench, rounds: int, most: int | None) -> None:
    """All processes active, then one active among others that only exist."""
    for count in up_to(most, AT_ONCE):
        held = bench.ours()
        with (
            workers(count, [calls, bench.kernels], bench.native()) as plain,
            workers(count, [calls, bench.kernels], held) as ours,
        ):
            groups = {"native": plain, "ours": ours}

            def pairs(side: str, groups=groups) -> float:
                answers = ask(groups[side], "plain", span=SPAN / bench.hurry)
                cpu_s = sum(cpu_ns for _, cpu_ns in answers) / 1e9
                return sum(operations for operations, _ in answers) / cpu_s * min(len(answers), CORES)

            rates = alternate(rounds, {side: lambda side=side: pairs(side) for side in groups})
            report.add(f"pairs-per-second-{count}-processes", "1/s", **rates)
    for count in up_to(most, IDLE):
        held = bench.ours()
        with (
            workers(1, [calls, bench.kernels], bench.native()) as plain,
            workers(1, [calls, bench.kernels], held) as ours,
            workers(count, [start, "idle"], held),
        ):
            sides = {"native": plain, "ours": ours}
            report.add(
                f"plain-{count}-idle-members", "ns", **compare(sides, rounds, "plain", span=COMPARED_SPAN / bench.hurry)
            )
