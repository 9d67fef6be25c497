"""`kubectl lamina`: the same commands as a plug-in of kubectl, and what kubectl asks to complete them.

kubectl runs `kubectl-lamina` for the commands, and `kubectl_complete-lamina` for words that are not complete yet.
"""

import sys
from collections.abc import Sequence

import typer

NO_FILES = ":4"
"""The last line of an answer: the shell should not offer files instead."""


def plugin() -> None:
    """The console script `kubectl-lamina`."""
    from lamina.cli.main import main

    main("kubectl lamina")


def complete() -> None:
    """The console script `kubectl_complete-lamina`. Its last argument is the word to complete, which may be empty."""
    for word in completions(sys.argv[1:]):
        typer.echo(word)
    typer.echo(NO_FILES)


def completions(words: Sequence[str]) -> list[str]:
    """What may stand in place of the last word."""
    from typer.main import get_command

    from lamina.cli.completion import vocabulary
    from lamina.cli.main import app

    *before, last = words or [""]
    root = get_command(app)
    following = vocabulary(root, root.make_context("lamina", [], resilient_parsing=True))
    command = ""
    for word in before:
        longer = f"{command} {word}".strip()
        command = longer if longer in following else command
    return [word for word in following[command] if word.startswith(last)]
