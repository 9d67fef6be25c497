"""What commands print and ask: one console for all output, so that tables and progress agree on width and color.

All of it passes through here, so what tenants wrote is no command to a terminal.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import typer
import yaml
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table

from lamina.cli.printable import printable_json, printable_lines
from lamina.errors import BadInput
from lamina.operations.charts import Chart, text_chart


class _Printable:
    """Prints as something else does, in printable characters."""

    def __init__(self, shown: RenderableType) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._shown, options):
            yield Segment(text if control else printable_lines(text), style, control)


class _PrintableOnly(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(each) for each in renderables]


console = Console(highlight=False)
console.push_render_hook(_PrintableOnly())

_T = TypeVar("_T")
_UNBOUNDED = 10_000
_GAPS = (2, 1)


def say(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print lines as they are, without styles and whatever the width, on standard output or standard error."""
    typer.echo(printable_lines(text) + end, err=err, nl=False)


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
        typer.echo(printable_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))
        return
    plain = msgspec.to_builtins(value)
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    if not all(line.isprintable() for line in text.split("\n")):
        text = yaml.safe_dump(plain, sort_keys=False)
    typer.echo(text, nl=False)


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
