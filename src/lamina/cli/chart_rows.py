"""Charts as rows of text, below a table."""

from collections.abc import Sequence

from rich.console import Console

from lamina.operations.charts import Chart, text_chart


def print_charts(console: Console, charts: Sequence[Chart]) -> None:
    """Print each chart after an empty line, as wide as the terminal."""
    for chart in charts:
        console.print()
        for line in text_chart(chart, console.width, ascii_only=console.options.ascii_only):
            console.print(line, markup=False, soft_wrap=True)
