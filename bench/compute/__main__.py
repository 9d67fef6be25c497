"""`python -m bench.compute`: shares against limits; prints a table, writes the file, ends with 1 if a floor breaks.

The matrix of conditions runs twice: in virtual time, where nothing disturbs it, and on the machine's clock, which takes
90 minutes and a machine without other work. `python -m bench.compute virtual --every 10` takes two minutes.
"""

import argparse
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import mean

from bench.compute import reactions
from bench.compute.conditions import (
    SECONDS,
    OnTheClock,
    Virtual,
    in_real_time,
    in_virtual_time,
    like_the_card,
    switching,
)
from bench.compute.runs import Load, Result, measure, off
from bench.machine import Bench, add_hurry, build, machine
from bench.measures import Report, add_outputs
from bench.parts import COMPILER, Part
from bench.program import add_parts, chosen, end_with
from lamina.core.grants import ComputePolicy

_QUICK = ("--every", "1000", "--hurry", "100")
PARTS = {
    "basics": Part(
        about="one container alone, similar ones next to each other, priorities and lending, on the machine's clock",
        needs=(COMPILER,),
        smallest=(*_QUICK, "--seconds", "2"),
    ),
    "virtual": Part(about="the matrix of conditions in virtual time", needs=(COMPILER,), smallest=_QUICK),
    "switching": Part(
        about="short kernels where time is lost between processes, in virtual time", needs=(COMPILER,), smallest=_QUICK
    ),
    "card": Part(about="shares in virtual time next to those of an H200", needs=(COMPILER,), smallest=_QUICK),
    "real": Part(about="the matrix of conditions on the machine's clock", needs=(COMPILER,), smallest=_QUICK),
}
BASICS_SECONDS = 4
LIMITS, KERNELS_MS, GRIDS = (10, 30, 50, 70), (0.1, 1.0, 10.0), (132, 1056, 16896)
PAIRS = [
    *((f"{a}-{b}-{ms:g}ms", (Load(cores=a, kernel_ms=ms), Load(cores=b, kernel_ms=ms)))
      for a, b in ((30, 60), (30, 70), (10, 90)) for ms in KERNELS_MS),
    ("50-50-0.1-and-10ms", (Load(cores=50, kernel_ms=0.1), Load(cores=50, kernel_ms=10))),
    ("30-60-deep", (Load(cores=30, how="async"), Load(cores=60, how="async"))),
    ("4x25", tuple(Load(cores=25) for _ in range(4))),
]  # fmt: skip
ONES = [
    *((how, Load(cores=50, how=how)) for how in ("sync", "async", "graph", "streams", "threads")),
    ("2-processes", Load(cores=50, processes=2)),
    ("4-processes", Load(cores=40, kernel_ms=0.1, processes=4)),
]


class Errors:
    """Signed errors of containers, in points, and how far their windows strayed."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self.strayed: list[float] = []
        self.stalls: list[float] = []

    def add(self, name: str, loads: tuple[Load, ...], result: Result, alone: Mapping[float, float]) -> None:
        """`alone` is what a loop of such kernels gets without limits or other loads: time that it leaves unused
        even then is not taken from it by Lamina."""
        strayed = []
        for i, load in enumerate(loads):
            others = sum(other.cores for other in loads) - load.cores
            least = min(load.cores, alone.get(load.kernel_ms, 100) - others)
            self.all.append(off(result.mean(i), least, load.cores))
            strayed.append(result.worst(i, least, load.cores))
        self.strayed += strayed
        self.stalls.append(result.stall_ms)
        got = " ".join(f"{result.mean(i):5.1f}" for i in range(len(loads)))
        print(f"{name:24} {got}   strayed {max(strayed):4.1f}   stall {result.stall_ms:6.1f} ms", flush=True)

    def report(self, report: Report, name: str) -> None:
        report.add(f"{name}-error", "points", ours=mean(abs(error) for error in self.all))
        report.add(f"{name}-within-5", "percent", ours=100 * mean(stray <= 5 for stray in self.strayed))
        report.add(f"{name}-stall", "ms", ours=max(self.stalls))


def cells(bench: Bench, program: Path, seconds: int, every: int) -> Errors:
    """One container alone: each limit, kernel and grid."""
    errors = Errors()
    for limit, kernel, grid in list(product(LIMITS, KERNELS_MS, GRIDS))[::every]:
        load = (Load(cores=limit, kernel_ms=kernel, blocks=grid),)
        result = measure(bench, program, load, seconds=seconds)
        errors.add(f"{limit} % {kernel:g} ms x {grid}", load, result, {})
    return errors


def unlimited(bench: Bench, program: Path, seconds: int) -> dict[float, float]:
    """What a loop of each kernel gets alone and without a limit, in percent."""
    return {
        kernel: measure(bench, program, (Load(cores=0, kernel_ms=kernel),), seconds=seconds).mean(0)
        for kernel in KERNELS_MS
    }


def lending(report: Report, bench: Bench, program: Path) -> None:
    """What a weight of 30 gets alone, and together with one of 70 that uses all of its share."""
    small, large = (Load(cores=cores, policy=ComputePolicy.WEIGHT) for cores in (30, 70))
    report.add("weight-alone", "percent", ours=measure(bench, program, (small,), seconds=4).mean(0))
    report.add("weight-contended", "percent", ours=measure(bench, program, (small, large), seconds=6).mean(0))


def basics(report: Report, bench: Bench, program: Path, seconds: int, every: int) -> None:
    """One container alone, containers with similar kernels, priorities and lending, at slices of 2 ms."""
    alone = unlimited(bench, program, seconds)
    print("without a limit", *(f"{ms:g} ms: {got:.1f}" for ms, got in alone.items()))
    cells(bench, program, seconds, every).report(report, "cells")
    pairs, ones = Errors(), Errors()
    for name, loads in PAIRS[::every]:
        pairs.add(name, loads, measure(bench, program, loads, seconds=seconds + 2), alone)
    for name, load in ONES[::every]:
        ones.add(name, (load,), measure(bench, program, (load,), seconds=seconds), {})
    pairs.report(report, "pairs")
    ones.report(report, "ways")
    lending(report, bench, program)
    reactions.measure(report, bench, program)
    report.control("cells-error", "points", ours=mean(got - limit for got in alone.values() for limit in LIMITS))


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.compute", description=__doc__)
    add_parts(parser, PARTS)
    add_outputs(parser)
    add_hurry(parser)
    length = f"length of each run in real time (default {BASICS_SECONDS}, and {SECONDS} in the matrix)"
    parser.add_argument("--seconds", type=int, help=length)
    parser.add_argument("--every", type=int, default=1, help="only every Nth condition (default 1)")
    options = parser.parse_args()
    parts, report = chosen(parser, PARTS, options), Report("compute")
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        program = build(Path(name), "load")
        virtual = Virtual(Path(name), program, options.hurry)
        if "basics" in parts:
            with machine(hurry=options.hurry) as bench:
                basics(report, bench, program, options.seconds or BASICS_SECONDS, options.every)
        if "virtual" in parts:
            in_virtual_time(report, virtual, options.every)
        if "switching" in parts:
            switching(report, virtual, options.every)
        if "card" in parts:
            like_the_card(report, virtual)
        if "real" in parts:
            in_real_time(report, OnTheClock(program, options.seconds or SECONDS, options.hurry), options.every)
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
