"""What processes of one container cost each other: pairs of cuMemAlloc and cuMemFree."""

from pathlib import Path

from bench.facade.calls import ask, compare
from bench.machine import Bench, workers
from bench.measures import Report, alternate

AT_ONCE = (1, 4, 16, 64)
IDLE = (0, 15, 63, 255)
SPAN = 0.2


def measure(report: Report, calls: Path, start: Path, bench: Bench, rounds: int) -> None:
    """All processes active, then one active among others that only exist."""
    for count in AT_ONCE:
        held = bench.ours()
        with workers(count, [calls], bench.native()) as plain, workers(count, [calls], held) as ours:
            groups = {"native": plain, "ours": ours}

            def pairs(side: str, groups=groups) -> float:
                return sum(operations for operations, _ in ask(groups[side], "plain", span=SPAN)) / SPAN

            rates = alternate(rounds, {side: lambda side=side: pairs(side) for side in groups})
            report.add(f"pairs-per-second-{count}-processes", "1/s", **rates)
    for count in IDLE:
        held = bench.ours()
        with (
            workers(1, [calls], bench.native()) as plain,
            workers(1, [calls], held) as ours,
            workers(count, [start, "idle"], held),
        ):
            sides = {"native": plain, "ours": ours}
            report.add(f"plain-{count}-idle-members", "ns", **compare(sides, rounds, "plain"))
