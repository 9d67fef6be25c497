"""Charts to SVG: plain data in, elements and files out. Names may contain any characters."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from lamina.operations.charts.shapes import Bar, BarChart, Chart, LineChart, number, part

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP, _ROW = 640, 220, 60, 40, 70, 26
_RIGHT = 190
_NAMES = 250
COLORS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6d597a", "#2e4057")
_WRONG, _MARK, _GRID, _INK = "#d1495b", "#222222", "#cccccc", "#222222"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg_file(charts: Sequence[Chart]) -> bytes:
    """An SVG file with these charts below each other."""
    written: bytes = ElementTree.tostring(svg_element(charts), encoding="utf-8", xml_declaration=True)
    return written


def svg_element(charts: Sequence[Chart]) -> ElementTree.Element:
    """The same as an element, for a page."""
    width = _LEFT + _WIDTH + _RIGHT
    root = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg")
    root.set("font-family", "sans-serif")
    root.set("font-size", "13")
    back = ElementTree.SubElement(root, "rect", width=str(width), fill="white")
    top = 0
    for chart in charts:
        top += _lines(root, top, chart) if isinstance(chart, LineChart) else _bars(root, top, chart)
    back.set("height", str(top))
    root.set("viewBox", f"0 0 {width} {top}")
    return root


def printable(text: str) -> str:
    """The text without the characters that XML does not allow."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _lines(root: ElementTree.Element, top: int, chart: LineChart) -> int:
    """Draws the chart below `top`, and returns its height."""
    top += _TOP
    _text(root, _LEFT, top - 14, chart.title)
    for quarter in range(5):
        y = top + _HEIGHT * (1 - quarter / 4)
        _line(root, [(_LEFT, y), (_LEFT + _WIDTH, y)], _GRID, 1)
        _text(root, _LEFT - 8, y + 4, number(chart.top * quarter / 4), anchor="end")
    for place in (0.0, 0.5, 1.0):
        _text(root, _LEFT + _WIDTH * place, top + _HEIGHT + 18, number(chart.last * place), anchor="middle")
    _text(root, _LEFT + _WIDTH / 2, top + _HEIGHT + 36, chart.axis, anchor="middle")
    for place, line in enumerate(chart.lines):
        color = COLORS[place % len(COLORS)]
        points = [
            (_LEFT + _WIDTH * part(x, chart.last), top + _HEIGHT * (1 - part(y, chart.top))) for x, y in line.finite
        ]
        # The later ones are thinner, so that of lines in one place all are seen.
        _line(root, points, color, 2 * (len(chart.lines) - place))
        y = top + 14 + 22 * place
        _line(root, [(_LEFT + _WIDTH + 20, y), (_LEFT + _WIDTH + 44, y)], color, 3)
        _text(root, _LEFT + _WIDTH + 52, y + 4, line.name)
    return max(_HEIGHT, 22 * len(chart.lines)) + _TOP + _GAP


def _bars(root: ElementTree.Element, top: int, chart: BarChart) -> int:
    _text(root, 16, top + _TOP - 14, chart.title)
    for place, bar in enumerate(chart.bars):
        _bar(root, top + _TOP + _ROW * place, chart, bar)
    return _TOP + _ROW * len(chart.bars) + _GAP // 2


def _bar(root: ElementTree.Element, y: int, chart: BarChart, bar: Bar) -> None:
    room = _LEFT + _WIDTH - _NAMES
    _text(root, _NAMES - 10, y + 13, bar.name, anchor="end")
    long = room * part(bar.figure, chart.top)
    shape = ElementTree.SubElement(root, "rect", x=str(_NAMES), y=f"{y:.1f}", width=f"{long:.1f}", height="18")
    shape.set("fill", _WRONG if bar.wrong else COLORS[0])
    if bar.mark is not None:
        x = _NAMES + room * part(bar.mark, chart.top)
        _line(root, [(x, y - 3), (x, y + 21)], _MARK, 2)
    _text(root, _LEFT + _WIDTH + 10, y + 13, chart.label(bar))


def _line(root: ElementTree.Element, points: Sequence[tuple[float, float]], color: str, width: int) -> None:
    written = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = ElementTree.SubElement(root, "polyline", points=written, fill="none", stroke=color)
    line.set("stroke-width", str(width))


def _text(root: ElementTree.Element, x: float, y: float, words: str, *, anchor: str = "start") -> None:
    text = ElementTree.SubElement(root, "text", x=f"{x:.1f}", y=f"{y:.1f}", fill=_INK)
    text.set("text-anchor", anchor)
    text.text = printable(words)
