"""Pictures of commands in a terminal, as SVG files that need nothing from elsewhere."""

import asyncio
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lamina.cli.screen.frame import frame
from lamina.cli.screen.source import TopCluster
from lamina.cli.screen.state import TopScreen
from lamina.ports.clock import SystemClock
from lamina.ports.kube.client import cluster_name, connect
from tests.terminal import Terminal

WIDTH = 124
TOP_SIZE = 100, 24
_CONTROL = re.compile(r"\x1b\[\??\d*[JKhl]|\x1b\]8;[^\x1b]*\x1b\\|\r")
_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!-- Generated .*?-->\s*", re.DOTALL)
"""Rich has programs load a font from another host."""
_EMPTY_ROWS = re.compile(r"\n{3,}")


def run(*arguments: str, environment: Mapping[str, str]) -> str:
    """What a command prints in a terminal, below its prompt."""
    with Terminal(*arguments, environment=environment, width=WIDTH) as terminal:
        terminal.ended()
        return f"$ lamina {' '.join(arguments)}\n{terminal.shown}"


async def top(kubeconfig: Path, keys: Sequence[str], *, readings: int = 12) -> list[Text]:
    """The screen of `lamina top` after these keys, with the curves of so many readings, one each second."""
    kube = await connect(kubeconfig)
    try:
        source, shown = TopCluster(kube, SystemClock(), cluster_name(kubeconfig)), TopScreen()
        shown.source = source.name
        for _ in range(readings):
            shown.take(await source.read())
            await asyncio.sleep(1)
        for key in keys:
            shown.press(key)
        return frame(shown, *TOP_SIZE)
    finally:
        await kube.close()


def save(path: Path, title: str, *outputs: str) -> None:
    """One picture of these outputs, one below the other."""
    texts = [Text.from_ansi(_EMPTY_ROWS.sub("\n\n", _CONTROL.sub("", output).strip("\n"))) for output in outputs]
    save_lines(path, title, [line for text in texts for line in (text, Text())], WIDTH)


def save_lines(path: Path, title: str, lines: Iterable[Text], width: int) -> None:
    """One picture of these lines."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        line.end = "\n"
        console.print(line)
    svg = console.export_svg(title=title, unique_id=path.stem)
    path.write_text(_FROM_ELSEWHERE.sub("", svg))
