"""The steps of a page: its commands in their order, as written.

A command is an indented line outside of fences that begins with the name of a program. The line

    <!-- not executed: REASON -->

in front of a block keeps the block's commands from being executed in the lab, and says why.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXECUTED = sorted(
    [
        *(DOCS / "tutorials").glob("*.md"),
        *(DOCS / "how-to").glob("migrate-from-*.md"),
        *(DOCS / "how-to" / name for name in ("request-gpus.md", "resize.md", "what-now.md")),
    ]
)
"""The pages of which each step is executed or marked."""
_PROGRAMS = ("kubectl", "lamina", "make", "export", "python3", "docker", "helm", "grep", "echo", ".")
_COMMAND = re.compile(rf"^ {{4,}}((?:{'|'.join(map(re.escape, _PROGRAMS))}) .*?)(?:  +#.*)?$")
_MARK = re.compile(r"^ *<!-- not executed: (.+) -->$")


class Step(NamedTuple):
    """One command. `skipped` says why it is not executed in the lab; empty if it is."""

    line: int
    command: str
    skipped: str


def steps(page: Path) -> Iterator[Step]:
    """The steps of a page from top to bottom."""
    return steps_of(page.read_text())


def steps_of(text: str) -> Iterator[Step]:
    """The same of a text."""
    fenced, skipped, in_block = False, "", False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif mark := _MARK.match(line):
            skipped, in_block = mark[1], False
        elif not fenced and (command := _COMMAND.match(line)):
            in_block = True
            yield Step(number, command[1], skipped)
        elif line.strip() or in_block:
            skipped, in_block = "", False
