"""`python -m bench.latency`: requests next to containers that keep the GPU busy; prints a table, writes the file, ends
with 1 if a floor breaks. Times are over those of the same requests alone, without the facade; neighbors' speed is over
that of one alone. `modes`, `goals` and `crowd` are computed in virtual time, `clock` runs on the machine's clock.
"""

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from bench.latency.cells import PLAIN, Cell, Mode, chosen, crowded, goals, modes
from bench.latency.figures import Compared
from bench.latency.runs import Runs
from bench.machine import add_hurry
from bench.measures import Report, add_outputs
from bench.parts import COMPILER, Part
from bench.program import add_parts, end_with
from bench.program import chosen as chosen_parts

_QUICK = ("--every", "20000", "--hurry", "100")
PARTS = {
    "modes": Part(
        about="each mode next to plain time slicing, over all kinds of requests and neighbors",
        needs=(COMPILER,),
        smallest=_QUICK,
    ),
    "goals": Part(
        about="a request of 4 ms next to training, on the slices of an H200", needs=(COMPILER,), smallest=_QUICK
    ),
    "crowd": Part(about="as goals, next to two and four trainings", needs=(COMPILER,), smallest=_QUICK),
    "clock": Part(about="as goals, on the machine's clock", needs=(COMPILER,), smallest=_QUICK, usual=False),
}
EVERY = 200
"""Of the conditions, by default."""
LONG_SLICES = 5
"""How many times longer time slices are in the null control."""


class Table:
    """Prints each run as a line, and keeps the p99 of service over plain time slicing by mode."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.over: dict[str, list[float]] = {}
        self.control: list[float] = []
        self.plain: list[float] = []
        self.first: list[tuple[Cell, Compared]] = []
        """Where requests have the higher priority."""

    def add(self, cell: Cell) -> None:
        """All modes; and as a null control plain time slicing with slices that are longer than a request."""
        plain = self._show(cell, PLAIN)
        self.plain.append(plain.p99)
        for mode in modes(cell.neighbors):
            found = self._show(cell, mode)
            self.over.setdefault(mode.name, []).append(found.p99 / plain.p99)
            if mode.name == "priority":
                self.first.append((cell, found))
        longer = structs.replace(cell, slice_us=LONG_SLICES * cell.slice_us)
        self.control.append(self._runs.compare(longer, PLAIN).p99 / plain.p99)

    def _show(self, cell: Cell, mode: Mode) -> Compared:
        found = self._runs.compare(cell, mode)
        service, total = (" / ".join(f"{each:.2f}" for each in part) for part in (found.service, found.total))
        print(f"{cell.name}, {mode.name}: p50 / p99 / p99.9 of service {service}, with the time in the queue {total};")
        print(f"    neighbors {found.speed:.2f}", flush=True)
        return found


def all_modes(report: Report, runs: Runs, name: str, cells: Iterable[Cell]) -> Table:
    """By mode, the worst of the cells."""
    table = Table(runs)
    for cell in cells:
        table.add(cell)
    for mode, ratios in table.over.items():
        report.add(f"{name}-{mode}", "times", ours=max(ratios))
    report.control(f"{name}-none", "times", ours=max(table.control))
    return table


def latency_class(report: Report, table: Table, name: str = "class") -> None:
    """What requests with the higher priority take over those alone, and what is left of the neighbor's speed. Without
    limits, as a null control, they take longer."""
    report.add(f"{name}-p99", "times", ours=max(found.p99 for _, found in table.first))
    for often, load in (("often", 0.5), ("seldom", 0.1)):
        report.add(
            f"{name}-neighbor-{often}",
            "of its speed",
            ours=min(found.speed for cell, found in table.first if cell.load == load),
        )
    report.control(f"{name}-p99", "times", ours=max(table.plain))


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    add_parts(parser, PARTS)
    add_outputs(parser)
    add_hurry(parser)
    parser.add_argument("--every", type=int, default=EVERY, help=f"only every Nth condition (default {EVERY})")
    options = parser.parse_args()
    parts, report = chosen_parts(parser, PARTS, options), Report("latency")
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        runs = Runs(Path(name), options.hurry)
        if "modes" in parts:
            all_modes(report, runs, "modes", chosen(options.every))
        if "goals" in parts:
            latency_class(report, all_modes(report, runs, "goals", goals()))
        if "crowd" in parts:
            latency_class(report, all_modes(report, runs, "crowd", crowded()), "crowd-class")
        if "clock" in parts:
            all_modes(report, Runs(Path(name), options.hurry, virtual=False), "clock", goals()[-1:])
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
