"""Every `lamina` command in the documentation exists, with its options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lamina.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
CALL = re.compile(r"(?:^|\| |&& )(lamina [a-z][^|`\n]*)")
INLINE = re.compile(r"`(lamina [a-z][^`|\\]*)")
CLI: Any = get_command(app)


def calls() -> Iterator[tuple[str, str]]:
    """Each command with the page that has it; lines that end in a backslash are one."""
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        fenced = "\n".join(re.findall(r"^```(?!yaml|python).*?^```", text, re.MULTILINE | re.DOTALL))
        code = [*fenced.splitlines(), *re.findall(r"^ {4,}\S.*", text, re.MULTILINE)]
        found = [call for line in code for call in CALL.findall(line.strip())]
        found += [" ".join(call.split()) for call in INLINE.findall(text)]
        yield from ((str(page.relative_to(ROOT)), call.partition("  #")[0].strip()) for call in found)


@pytest.mark.parametrize(("page", "call"), sorted(set(calls())))
def test_a_command_of_the_documentation_exists(page: str, call: str) -> None:
    command = CLI
    words = shlex.split(call.rstrip("-|&; "), comments=True)[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert command is not CLI or words[0].startswith("--"), f"{page}: {call}"
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word == "--":
            break
        if word.startswith("-"):
            assert word.partition("=")[0] in known | {"--help"}, f"{page}: {call}: no option {word}"


def test_commands_are_found() -> None:
    assert len(set(calls())) > 100
