"""Questions of commands, and what happens without an answer: Ctrl-C ends a command as anywhere else, and without a
terminal the options are named that answer instead.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import typer

from lamina.cli.connection import chosen_cluster
from lamina.errors import BadInput

_T = TypeVar("_T")


def answered(question: Callable[[], _T], instead: str) -> _T:
    """The answer to a question. Raises BadInput without an answer: `instead` are the options to use."""
    try:
        return question()
    except typer.Abort as none:
        if sys.stdin.isatty():
            raise KeyboardInterrupt from none
        raise BadInput(f"no answer on standard input; use {instead}") from none


def confirm(effect: str, kubeconfig: Path | None, *, yes: bool, dry_run: bool) -> bool:
    """Name the cluster and what would happen, and ask. Returns whether to go on. Raises BadInput without an answer."""
    typer.echo(f"Cluster: {chosen_cluster(kubeconfig)}")
    typer.echo(effect)
    if dry_run:
        typer.echo("Dry run: nothing was changed.")
        return False
    if yes or answered(lambda: typer.confirm("Continue?", default=False), "--yes or --dry-run"):
        return True
    typer.echo("Nothing was changed.")
    return False
