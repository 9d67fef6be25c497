"""Texts on a screen: what a terminal may be sent, how wide it is there, bars, and what is left of a long name."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from lamina.cli.printable import printable

Part = tuple[str, str]
"""A text and its style; the empty style is that of the terminal."""


class Glyphs(NamedTuple):
    """What bars, curves and marks are drawn with."""

    eighths: str = " ▏▎▍▌▋▊▉█"
    granted: str = "░"
    free: str = "·"
    levels: str = "▁▂▃▄▅▆▇█"
    cut: str = "…"
    falling: str = "▾"
    rising: str = "▴"
    up_down: str = "↑↓"


UNICODE = Glyphs()
ASCII = Glyphs(" #", "=", ".", "_.:-=+*#", "~", "v", "^", "up, down")


def styled(*parts: Part) -> Text:
    """One line of these parts. Whatever they contain, the terminal gets no command and no second line."""
    return Text.assemble(*((printable(text), style) for text, style in parts), end="")


def width_of(text: str) -> int:
    """Columns of a terminal."""
    return len(text) if text.isascii() else cell_len(text)


def shortened(text: str, width: int, cut: str = UNICODE.cut) -> str:
    """The text, without its middle where it is wider: names of pods differ at their ends."""
    if width_of(text) <= width:
        return text
    if width <= 1:
        return cut[:width]
    tail = width // 2
    signs = list(_signs(text))
    return _first(signs, width - 1 - tail) + cut + "".join(reversed(list(_within(reversed(signs), tail))))


def padded(text: str, width: int, *, right: bool = False, cut: str = UNICODE.cut) -> str:
    """The text in exactly this width."""
    text = shortened(text, width, cut)
    gap = " " * (width - width_of(text))
    return gap + text if right else text + gap


def bar(width: int, used: float | None, granted: float | None, style: str, glyphs: Glyphs = UNICODE) -> list[Part]:
    """A bar of parts of one: used first, then what is granted and not used. None is not known."""
    if used is None and granted is None:
        return [(" " * width, "")]
    steps = len(glyphs.eighths) - 1
    filled = math.floor(min(1.0, max(0.0, used or 0.0)) * width * steps + 0.5)
    whole, rest = divmod(filled, steps)
    text = glyphs.eighths[-1] * whole + (glyphs.eighths[rest] if rest else "")
    held = max(0, round(min(1.0, max(0.0, granted or 0.0)) * width) - len(text))
    return [(text, style), (glyphs.granted * held, "blue"), (glyphs.free * (width - len(text) - held), "dim")]


def curve(values: Sequence[float | None], width: int, glyphs: Glyphs = UNICODE) -> str:
    """The last percentages, one character each; a space is not known."""
    last = len(glyphs.levels) - 1
    shown = values[-width:] if width > 0 else ()
    return "".join(
        " " if value is None else glyphs.levels[min(last, max(0, int(value * len(glyphs.levels) / 100)))]
        for value in shown
    )


def pieces(text: str, width: int) -> Iterator[str]:
    """The text in pieces of at most this width, or of one character where that is wider."""
    piece = ""
    for sign in _signs(text):
        if piece and width_of(piece) + width_of(sign) > width:
            yield piece
            piece = ""
        piece += sign
    yield piece


def _signs(text: str) -> Iterator[str]:
    """Each character with the marks that are drawn over it."""
    sign = ""
    for each in text:
        if sign and cell_len(each):
            yield sign
            sign = ""
        sign += each
    if sign:
        yield sign


def _first(signs: Sequence[str], width: int) -> str:
    text = "".join(_within(iter(signs), width))
    return text + " " * (width - width_of(text))


def _within(signs: Iterator[str], width: int) -> Iterator[str]:
    for sign in signs:
        width -= width_of(sign)
        if width < 0:
            return
        yield sign
