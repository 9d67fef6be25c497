"""Which program stands for a container, in a lab that pulls no images."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

PAUSE = ("sleep", "infinity")
"""What runs in place of an image's entrypoint that nobody knows."""


def program(command: Sequence[str], args: Sequence[str], path: str, programs: Path) -> tuple[list[str], bool]:
    """The words to run, and whether they stand for an entrypoint that is unknown.

    Without a command, the image's entrypoint would run. Arguments that begin with a program are taken as one, as they
    would be by an image without entrypoint.
    """
    if command:
        return [at_home(command[0], programs), *command[1:], *args], False
    if args and shutil.which(args[0], path=path):
        return list(args), False
    return list(PAUSE), True


def at_home(word: str, programs: Path) -> str:
    """A program named by its path in an image is looked for among the lab's programs when the machine lacks it."""
    own = programs / PurePosixPath(word).name
    if word.startswith("/") and not Path(word).exists() and os.access(own, os.X_OK):
        return str(own)
    return word
