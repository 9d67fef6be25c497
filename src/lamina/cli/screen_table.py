"""A table of a fixed width for screens: the least important columns go first, then long texts are shortened."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

R = TypeVar("R")
_GAP = 1
_MIN_WIDTH = 8
"""Characters of a text that is shortened."""


class ScreenColumn(NamedTuple, Generic[R]):
    """A column. The one with the greatest `spare` goes first where there is no room; 0 always stays.

    Texts may be shortened, numbers may not.
    """

    title: str
    cell: Callable[[R], str]
    spare: int = 0
    number: bool = False


def screen_table(columns: Sequence[ScreenColumn[R]], rows: Sequence[R], width: int) -> list[str]:
    """The head and a line for each row, none longer than `width`."""
    shown = list(columns)
    widths = _widths(shown, rows)
    while _least(shown, widths) > width and any(column.spare for column in shown):
        shown.remove(max(shown, key=lambda column: column.spare))
        widths = _widths(shown, rows)
    while sum(widths) + _GAP * (len(widths) - 1) > width:
        texts = [place for place, column in enumerate(shown) if not column.number and widths[place] > 1]
        if not texts:
            break
        widths[max(texts, key=lambda place: widths[place])] -= 1
    head = _line(shown, [column.title for column in shown], widths)
    lines = [head, *(_line(shown, [column.cell(row) for column in shown], widths) for row in rows)]
    return [line[:width] for line in lines]


def shortened(text: str, width: int) -> str:
    """The text, with the last character that fits replaced where more follow."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}~"[:width]


def _widths(columns: Sequence[ScreenColumn[R]], rows: Sequence[R]) -> list[int]:
    return [max(len(column.title), *(len(column.cell(row)) for row in rows), 1) for column in columns]


def _least(columns: Sequence[ScreenColumn[R]], widths: Sequence[int]) -> int:
    """The width when all texts are shortened."""
    least = (wide if column.number else min(wide, _MIN_WIDTH) for column, wide in zip(columns, widths, strict=True))
    return sum(least) + _GAP * (len(columns) - 1)


def _line(columns: Sequence[ScreenColumn[R]], cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = (
        shortened(cell, wide).rjust(wide) if column.number else shortened(cell, wide).ljust(wide)
        for column, cell, wide in zip(columns, cells, widths, strict=True)
    )
    return (" " * _GAP).join(parts).rstrip()
