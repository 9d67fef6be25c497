"""The one console: what a person reads goes through it, so that tables and progress agree on width and colour."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

console = Console(highlight=False)

_UNBOUNDED = 10_000
_GAPS = (2, 1)


def print_table(console: Console, table: Table) -> None:
    """Print it as wide as its content, whatever the terminal's width: a name that is cut cannot be copied.

    Columns move together before lines run over the edge.
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
