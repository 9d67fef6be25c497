"""Charts to lines of text for a terminal: a row for each bar, and a row of rising blocks for each curve."""

from lamina.operations.charts.shapes import Bar, BarChart, Chart, LineChart, number, part

_LEVELS, _LEVELS_ASCII = "▁▂▃▄▅▆▇█", "_.:-=+*#"
_MIN_WIDTH = 10


def text_chart(chart: Chart, width: int, *, ascii_only: bool = False) -> list[str]:
    """The lines of the chart, the title first. They fit into `width` columns while names and labels leave room."""
    rows = _curves(chart, width, ascii_only) if isinstance(chart, LineChart) else _bars(chart, width, ascii_only)
    return [chart.title, *rows]


def _bars(chart: BarChart, width: int, ascii_only: bool) -> list[str]:
    names = max((len(bar.name) for bar in chart.bars), default=0)
    labels = max((len(chart.label(bar)) for bar in chart.bars), default=0)
    room = max(_MIN_WIDTH, width - names - labels - 6)
    return [
        f"  {bar.name:<{names}}  {_bar(chart, bar, room, ascii_only)}  {chart.label(bar)}".rstrip()
        for bar in chart.bars
    ]


def _bar(chart: BarChart, bar: Bar, room: int, ascii_only: bool) -> str:
    """The bar with its mark, `room` columns wide."""
    filled = round(room * part(bar.figure, chart.top))
    cells = list(("#" if ascii_only else "█") * filled + " " * (room - filled))
    if bar.mark is not None:
        cells[min(room - 1, round(room * part(bar.mark, chart.top)))] = "|"
    return "".join(cells)


def _curves(chart: LineChart, width: int, ascii_only: bool) -> list[str]:
    names = max((len(line.name) for line in chart.lines), default=0)
    levels = _LEVELS_ASCII if ascii_only else _LEVELS
    rows = []
    for line in chart.lines:
        points = line.finite
        if not points:
            rows.append(f"  {line.name:<{names}}  -")
            continue
        end = f"{number(round(points[-1][1], 1))} {chart.unit}"
        room = max(_MIN_WIDTH, width - names - len(end) - 6)
        columns = min(room, len(points))
        shown = [points[round(place * (len(points) - 1) / max(1, columns - 1))][1] for place in range(columns)]
        blocks = "".join(levels[_level(value, chart.top, len(levels))] for value in shown)
        rows.append(f"  {line.name:<{names}}  {blocks}  {end}")
    return rows


def _level(value: float, top: float, count: int) -> int:
    return min(count - 1, int(count * part(value, top)))
