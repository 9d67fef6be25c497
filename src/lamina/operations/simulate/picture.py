"""Results as a picture: an SVG of what is allocated, and of what is stranded of the rest, while pods come."""

from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from lamina.operations.simulate.replay import Point, Result

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 640, 220, 60, 40, 70
_COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6d597a", "#2e4057")
_PANELS: tuple[tuple[str, Callable[[Point], float]], ...] = (
    ("allocated, % of all GPUs", lambda point: point.allocated),
    ("stranded, % of what is free", lambda point: point.stranded),
)


def picture(results: Sequence[Result]) -> bytes:
    """The SVG of these results, which are over the same pods."""
    size = (_LEFT + _WIDTH + 150, _TOP + len(_PANELS) * (_HEIGHT + _GAP))
    root = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {size[0]} {size[1]}")
    root.set("font-family", "sans-serif")
    root.set("font-size", "13")
    ElementTree.SubElement(root, "rect", width=str(size[0]), height=str(size[1]), fill="white")
    for number, (title, value) in enumerate(_PANELS):
        _panel(root, _TOP + number * (_HEIGHT + _GAP), title, results, value)
    for number, result in enumerate(results):
        y = _TOP + 14 + 22 * number
        _line(root, [(_LEFT + _WIDTH + 20, y), (_LEFT + _WIDTH + 44, y)], _COLOURS[number % len(_COLOURS)], 3)
        _text(root, _LEFT + _WIDTH + 52, y + 4, result.policy)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _panel(
    root: ElementTree.Element, top: int, title: str, results: Sequence[Result], value: Callable[[Point], float]
) -> None:
    last = max(result.end.pods for result in results)
    _text(root, _LEFT, top - 10, title)
    for percent in (0, 25, 50, 75, 100):
        y = top + _HEIGHT * (1 - percent / 100)
        _line(root, [(_LEFT, y), (_LEFT + _WIDTH, y)], "#cccccc", 1)
        _text(root, _LEFT - 8, y + 4, str(percent), anchor="end")
    for pods in sorted({0, last // 2, last}):
        _text(root, _LEFT + _WIDTH * pods / last, top + _HEIGHT + 18, f"{pods}", anchor="middle")
    _text(root, _LEFT + _WIDTH / 2, top + _HEIGHT + 36, "pods that have come", anchor="middle")
    for number, result in enumerate(results):
        points = [
            (_LEFT + _WIDTH * point.pods / last, top + _HEIGHT * (1 - min(1.0, value(point))))
            for point in result.points
        ]
        # The later ones are thinner, so that of lines in one place all are seen.
        _line(root, points, _COLOURS[number % len(_COLOURS)], 2 * (len(results) - number))


def _line(root: ElementTree.Element, points: Sequence[tuple[float, float]], color: str, width: int) -> None:
    written = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = ElementTree.SubElement(root, "polyline", points=written, fill="none", stroke=color)
    line.set("stroke-width", str(width))


def _text(root: ElementTree.Element, x: float, y: float, words: str, *, anchor: str = "start") -> None:
    text = ElementTree.SubElement(root, "text", x=f"{x:.1f}", y=f"{y:.1f}", fill="#222222")
    text.set("text-anchor", anchor)
    text.text = words
