"""A table of a fixed width: columns that say least go first, then long texts lose their middle, and bars take what is
left."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lamina.cli.printable import printable
from lamina.cli.screen.columns import ScreenColumn
from lamina.cli.screen.text import UNICODE, Glyphs, Part, bar, padded, width_of

_GAP = 1
_LEAST_BAR, _LARGEST_BAR, _FIGURE = 6, 24, 5
"""Columns of a bar, and of the percentage after it."""


class PlacedColumn(NamedTuple):
    """A column in its width."""

    column: ScreenColumn[Any]
    width: int
    start: int


class Measured(NamedTuple):
    """What a column needs, and the least that it can do with."""

    column: ScreenColumn[Any]
    title: str
    natural: int
    least: int
    same: bool
    """Whether all rows have the same text, which tells nothing about any of them."""


def measure(columns: Sequence[ScreenColumn[Any]], rows: Sequence[Any], titles: Sequence[str]) -> list[Measured]:
    """What the columns need for these rows, whatever the width."""
    return [_measured(column, title, rows) for column, title in zip(columns, titles, strict=True)]


def place(measured: Sequence[Measured], width: int) -> list[PlacedColumn]:
    """The columns that there is room for, from left to right."""
    shown = list(measured)
    crowded = sum(each.natural for each in shown) + _GAP * (len(shown) - 1) > width
    while _taken([each.least for each in shown]) > width and any(each.column.spare for each in shown):
        shown.remove(max(shown, key=_spare))
    while crowded and (dull := next((each for each in shown if each.same and each.column.spare), None)):
        if _taken([each.natural for each in shown]) <= width:
            break
        shown.remove(dull)
    titles = {each.column.title for each in shown}
    shown = [each for each in shown if each.column.twin not in titles]
    widths = _shrunk(shown, [each.natural for each in shown], width)
    bars = [index for index, each in enumerate(shown) if each.column.bar]
    for turn in range(min(max(0, width - _taken(widths)), len(bars) * (_LARGEST_BAR - _LEAST_BAR))):
        widths[bars[turn % len(bars)]] += 1
    starts = [sum(widths[:index]) + _GAP * index for index in range(len(shown))]
    return [PlacedColumn(each.column, wide, start) for each, wide, start in zip(shown, widths, starts, strict=True)]


def head(placed: Sequence[PlacedColumn], titles: dict[str, str], glyphs: Glyphs = UNICODE) -> str:
    """The line of the titles. `titles` are those that differ from the columns' own."""
    return _joined(
        padded(titles.get(each.column.title, each.column.title), each.width, right=each.column.number, cut=glyphs.cut)
        for each in placed
    )


def line(placed: Sequence[PlacedColumn], row: Any, glyphs: Glyphs = UNICODE) -> list[Part]:
    """The parts of the line of a row."""
    parts: list[Part] = []
    for each in placed:
        if parts:
            parts.append((" " * _GAP, ""))
        column = each.column
        cell = printable(column.cell(row))
        if column.bar is None:
            parts.append((padded(cell, each.width, right=column.number, cut=glyphs.cut), column.style(row)))
        else:
            filled = column.bar(row)
            parts += bar(each.width - _FIGURE, filled.used, filled.granted, filled.style, glyphs)
            parts.append((padded(cell, _FIGURE, right=True, cut=glyphs.cut), ""))
    return parts


def _measured(column: ScreenColumn[Any], title: str, rows: Sequence[Any]) -> Measured:
    if column.bar:
        natural = _LEAST_BAR + _FIGURE
        return Measured(column, title, natural, natural, False)
    cells = {printable(column.cell(row)) for row in rows}
    natural = max([width_of(title), *map(width_of, cells)])
    least = natural if column.number else min(natural, column.least)
    return Measured(column, title, natural, least, len(rows) > 1 and len(cells) == 1 and not column.number)


def _spare(each: Measured) -> tuple[bool, int]:
    return each.same and each.column.spare > 0, each.column.spare


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _shrunk(shown: Sequence[Measured], widths: list[int], width: int) -> list[int]:
    """Widths that fit: the longest texts give way first, and go below their least only where nothing else is left."""
    texts = [index for index, each in enumerate(shown) if not each.column.number and not each.column.bar]
    for least in ({index: shown[index].least for index in texts}, dict.fromkeys(texts, 1)):
        while _taken(widths) > width and (long := [index for index in texts if widths[index] > least[index]]):
            widths[max(long, key=lambda index: widths[index])] -= 1
    return widths


def _joined(texts: Any) -> str:
    return (" " * _GAP).join(texts)
