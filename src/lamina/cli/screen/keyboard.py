"""What a terminal sends: keys by their names, and clicks. A sequence may come in two pieces."""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

_KEYS = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "erase",
    "\x08": "erase",
    "\x15": "erase all",
    "\x0c": "ctrl-l",
    "\x1b": "escape",
}
_MOUSE = re.compile(r"\x1b\[<(\d+);(\d+);(\d+)([Mm])")
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)\Z")
_WHEEL = {64: "wheel up", 65: "wheel down"}
_LONGEST = 64
"""Characters of a sequence that is still waited for the end of."""


class Click(NamedTuple):
    """The main button of the mouse, from 0."""

    column: int
    line: int


class KeyReader:
    """Makes keys of the bytes that a terminal sends."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._rest = ""

    def read(self, sent: bytes) -> Iterator[str | Click]:
        """The keys and clicks in these bytes. Those without a meaning are left out."""
        text = self._rest + self._decoder.decode(sent)
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished.group() if unfinished and len(unfinished.group()) < _LONGEST else ""
        text = text[: len(text) - len(self._rest)]
        while text:
            found = _SEQUENCE.match(text)
            length = found.end() if found else 1
            if (key := _key(text[:length])) is not None:
                yield key
            text = text[length:]


def _key(sent: str) -> str | Click | None:
    if mouse := _MOUSE.fullmatch(sent):
        button, column, line = map(int, mouse.groups()[:3])
        if button == 0 and mouse[4] == "M":
            return Click(column - 1, line - 1)
        return _WHEEL.get(button)
    return _KEYS.get(sent) or (sent if sent.isprintable() else None)
