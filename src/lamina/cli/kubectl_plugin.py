"""`kubectl lamina`: the same commands as a plug-in of kubectl, and what kubectl asks to complete them.

kubectl runs `kubectl-lamina` for the commands, and `kubectl_complete-lamina` for words that are not complete yet.
"""

import sys
from collections.abc import Sequence
from typing import Any

from typer.main import get_command

from lamina.cli.completion import following, nested_in
from lamina.cli.main import app, main
from lamina.cli.terminal import say

NO_FILES = ":4"
"""The last line of an answer: the shell should not offer files instead."""


def plugin() -> None:
    """The console script `kubectl-lamina`."""
    main("kubectl lamina")


def complete() -> None:
    """The console script `kubectl_complete-lamina`. Its last argument is the word to complete, which may be empty."""
    for word in completions(sys.argv[1:]):
        say(word)
    say(NO_FILES)


def completions(words: Sequence[str]) -> list[str]:
    """What may stand in place of the last word."""
    *before, last = words or [""]
    command: Any = get_command(app)
    context = command.make_context("lamina", [], resilient_parsing=True)
    for word in before:
        command = nested_in(command).get(word, command)
    return [word for word in following(command, context) if word.startswith(last)]
