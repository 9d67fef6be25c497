"""Pictures of commands in a terminal, as SVG files that need nothing from elsewhere."""

import io
import re
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.terminal import Terminal

WIDTH = 124
FRAME = "\x1b[H"
"""What a command with a whole screen prints before it draws it again."""
_CONTROL = re.compile(r"\x1b\[\??\d*[JKhl]|\x1b\]8;[^\x1b]*\x1b\\|\r")
_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!-- Generated .*?-->\s*", re.DOTALL)
"""Rich has programs load a font from another host."""
_EMPTY_ROWS = re.compile(r"\n{3,}")


def run(*arguments: str, environment: Mapping[str, str]) -> str:
    """What a command prints in a terminal, below its prompt."""
    with Terminal(*arguments, environment=environment, width=WIDTH) as terminal:
        terminal.ended()
        return f"$ lamina {' '.join(arguments)}\n{terminal.shown}"


def screen(*arguments: str, until: str, environment: Mapping[str, str], seconds: float = 10.0) -> str:
    """The last screen that a command draws within so many seconds once it has shown a text."""
    with Terminal(*arguments, environment=environment, width=WIDTH) as terminal:
        terminal.until_shown(until)
        time.sleep(seconds)
        shown = terminal.shown
        terminal.type(b"q")
        terminal.ended()
    return shown.split(FRAME)[-1]


def save(path: Path, title: str, *outputs: str) -> None:
    """One picture of these outputs, one below the other."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for output in outputs:
        console.print(Text.from_ansi(_EMPTY_ROWS.sub("\n\n", _CONTROL.sub("", output).strip("\n"))))
        console.print()
    svg = console.export_svg(title=title, unique_id=path.stem)
    path.write_text(_FROM_ELSEWHERE.sub("", svg))
