"""What commands print and ask: one console for all output, so that tables and progress agree on width and color."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import typer
import yaml
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from lamina.errors import BadInput
from lamina.operations.charts import Chart, text_chart

console = Console(highlight=False)

_T = TypeVar("_T")
_UNBOUNDED = 10_000
_GAPS = (2, 1)


def print_table(console: Console, table: Table) -> None:
    """Print the table as wide as its content, even beyond the terminal: a truncated name cannot be copied.

    Gaps between columns shrink before lines run over the edge.
    """
    for column in table.columns:
        column.no_wrap = True
    for gap in _GAPS:
        table.padding = (0, gap, 0, 0)
        width = Measurement.get(console, console.options.update_width(_UNBOUNDED), table).maximum
        if width <= console.width:
            break
    table.width = width
    console.print(table, crop=False)


def print_document(value: object, form: str) -> None:
    """Print the value as `json` or `yaml`."""
    if form == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        typer.echo(yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True), nl=False)


def print_charts(console: Console, charts: Sequence[Chart]) -> None:
    """Print each chart after an empty line, as wide as the terminal."""
    for chart in charts:
        console.print()
        for line in text_chart(chart, console.width, ascii_only=console.options.ascii_only):
            console.print(line, markup=False, soft_wrap=True)


def answered(question: Callable[[], _T], instead: str) -> _T:
    """The answer to a question. Ctrl-C ends the command as anywhere else. Raises BadInput where there is no terminal:
    `instead` are the options to use."""
    try:
        return question()
    except typer.Abort as none:
        if sys.stdin.isatty():
            raise KeyboardInterrupt from none
        raise BadInput(f"no answer on standard input; use {instead}") from none
