"""Measures, their floors, and the table and file that a benchmark ends with.

report = Report("facade")
report.add("launch-added", "ns", native=9.1, ours=11.0)      # judged by [facade.launch-added] of floors.toml
report.control("held-over-limit", "MiB", ours=1024)          # the same floor must break
sys.exit(report.finish(json_file))
"""

import argparse
import json
import statistics
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from lamina.cli.terminal import print_charts, print_table
from lamina.operations.charts import Bar, BarChart, HtmlTable, html_page

FLOORS = Path(__file__).with_name("floors.toml")


class Floor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a measure must keep: `of` ours, or ours less native (added), or ours over native (ratio); `bound` is
    included. `calibration` tells the machine, the spread and why this number."""

    of: Literal["ours", "added", "ratio"]
    most: float | None = None
    least: float | None = None
    calibration: str
    published: str = ""
    """Another system's figure, measured elsewhere."""

    def kept(self, value: float) -> bool:
        """Whether the value is within the floor; one that is no number is not."""
        return value <= self.bound if self.least is None else value >= self.bound

    @property
    def bound(self) -> float:
        """The number that is not to be passed."""
        bound = self.most if self.least is None else self.least
        assert bound is not None, "a floor needs `most` or `least`"
        return bound


class Measure(Struct, kw_only=True, omit_defaults=True):
    """One line of the table and one object of the file. Without a floor it is recorded and never fails."""

    native: float | None = None
    ours: float
    unit: str
    of: str = ""
    compared: float | None = None
    """What the floor is about: ours, ours less native, or ours over native."""
    floor: float | None = None
    published: str = ""
    ok: bool


class Report:
    """Collects a benchmark's measures and judges them by the floors of its section."""

    def __init__(self, section: str, floors: Path = FLOORS) -> None:
        with floors.open("rb") as file:
            self._floors = msgspec.convert(tomllib.load(file).get(section, {}), dict[str, Floor])
        self._section = section
        self.measures: dict[str, Measure] = {}

    def add(self, name: str, unit: str, *, ours: float, native: float | None = None) -> Measure:
        """Lamina's figure, with the same figure without Lamina where there is one."""
        floor = self._floors.get(name)
        measure = Measure(native=native, ours=ours, unit=unit, ok=True)
        if floor is not None:
            value = _compared(floor.of, native, ours)
            measure.of, measure.compared, measure.floor = floor.of, value, floor.bound
            measure.published, measure.ok = floor.published, floor.kept(value)
        self.measures[name] = measure
        return measure

    def control(self, name: str, unit: str, *, ours: float, native: float | None = None) -> Measure:
        """The same measure with the protection removed. It passes when it breaks the floor of `name`."""
        floor = self._floors[name]
        value = _compared(floor.of, native, ours)
        measure = Measure(
            native=native,
            ours=ours,
            unit=unit,
            of=floor.of,
            compared=value,
            floor=floor.bound,
            ok=not floor.kept(value),
        )
        self.measures[f"{name} (null control)"] = measure
        return measure

    def finish(self, file: Path | None, console: Console | None = None, html: Path | None = None) -> int:
        """Prints the table and charts, writes the files, and returns the exit status: 1 when anything is not as it must
        be."""
        console = console or Console()
        print_table(console, self._table())
        print_charts(console, self.charts())
        if file is not None:
            file.write_text(json.dumps(msgspec.to_builtins(self.measures), indent=1) + "\n")
        if html is not None:
            html.write_bytes(self._page())
        return 0 if all(measure.ok for measure in self.measures.values()) else 1

    def charts(self) -> list[BarChart]:
        """One for each unit, with what floors are about and the floors as marks."""
        bars: dict[str, list[Bar]] = {}
        for name, measure in self.measures.items():
            value = measure.ours if measure.compared is None else measure.compared
            unit = "times" if measure.of == "ratio" else measure.unit
            shown = f"{name}, added" if measure.of == "added" else name
            bars.setdefault(unit, []).append(Bar(name=shown, value=value, limit=measure.floor, wrong=not measure.ok))
        return [
            BarChart(title=f"{self._section}, {unit or 'numbers'}", unit=unit, limit_means="floor", bars=tuple(each))
            for unit, each in bars.items()
        ]

    def _page(self) -> bytes:
        head = ("measure", "native", "ours", "added", "floor", "unit", "", "HAMi-core, published elsewhere")
        rows = tuple(_cells(name, measure) for name, measure in self.measures.items())
        wrong = frozenset(place for place, each in enumerate(self.measures.values()) if not each.ok)
        table = HtmlTable(title="All measures", head=head, rows=rows, wrong=wrong)
        return html_page(f"Benchmark {self._section}", {}, self.charts(), [table])

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("measure")
        for column in ("native", "ours", "added", "floor"):
            table.add_column(column, justify="right")
        table.add_column("unit")
        table.add_column("")
        table.add_column("HAMi-core, published elsewhere")
        for name, measure in self.measures.items():
            table.add_row(*_cells(name, measure))
        return table


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """The options for the files that a benchmark writes."""
    parser.add_argument("--json", type=Path, help="write the measures to this file")
    parser.add_argument("--html", type=Path, help="write the measures with charts to this HTML page")


def _cells(name: str, measure: Measure) -> tuple[str, ...]:
    """A measure as a row of the table."""
    added = "" if measure.native is None else _number(measure.ours - measure.native)
    limit = "" if measure.floor is None else f"{_number(measure.floor)} {measure.of}"
    native = "" if measure.native is None else _number(measure.native)
    verdict = "ok" if measure.ok else "FAILED"
    return name, native, _number(measure.ours), added, limit, measure.unit, verdict, measure.published


def _compared(of: str, native: float | None, ours: float) -> float:
    if of == "ours":
        return ours
    assert native is not None, f"a floor of {of} needs a native figure"
    return ours - native if of == "added" else ours / native


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def alternate(
    rounds: int, sides: Mapping[str, Callable[[], float]], take: Callable[[list[float]], float] = statistics.median
) -> dict[str, float]:
    """The median of each side over rounds in which all sides have their turn, so that a slow moment meets all.

    `take=min` is for elapsed time of whole processes, which other work on the machine only ever lengthens.
    """
    taken: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        names = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            taken[name].append(sides[name]())
    return {side: take(values) for side, values in taken.items()}
