"""Which program stands for a container: the lab pulls no images."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

PAUSE = ("sleep", "infinity")
"""Runs in place of an unknown entrypoint."""


def program(command: Sequence[str], args: Sequence[str], path: str, programs: Path) -> tuple[list[str], bool]:
    """The command line to run, and whether it replaces an unknown entrypoint.

    Without a command, the image's entrypoint would run. Arguments that begin with a program are used as the command, as
    an image without an entrypoint would.
    """
    if command:
        return [local_program(command[0], programs), *command[1:], *args], False
    if args and shutil.which(args[0], path=path):
        return list(args), False
    return list(PAUSE), True


def local_program(word: str, programs: Path) -> str:
    """Replace a program path that exists only in the image by the lab's program of that name."""
    own = programs / PurePosixPath(word).name
    if word.startswith("/") and not Path(word).exists() and os.access(own, os.X_OK):
        return str(own)
    return word
