"""The console for all output, so that tables and progress agree on width and color."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

console = Console(highlight=False)

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
