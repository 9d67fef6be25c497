"""Which program stands for a container: the lab pulls no images."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

PAUSE = ("sleep", "infinity")
"""Runs in place of an unknown entrypoint."""
ENTRYPOINTS = {"dcgmproftester": "dcgmproftester11"}
"""The lab's programs that stand for entrypoints of images, by a word in the image's name."""
_PATH = re.compile(r"(?<![\w./-])/(?:[\w.+-]+/)*[\w.+-]+")


def program(
    image: str, command: Sequence[str], args: Sequence[str], path: str, programs: Path
) -> tuple[list[str], bool]:
    """The command line to run, and whether it replaces an unknown entrypoint.

    Without a command, the image's entrypoint would run. Arguments that begin with a program are used as the command, as
    an image without an entrypoint would.
    """
    if command:
        return [with_local_programs(word, programs) for word in (*command, *args)], False
    if args and shutil.which(args[0], path=path):
        return list(args), False
    known = next((name for word, name in ENTRYPOINTS.items() if word in image and args), None)
    return ([str(programs / known), *args], False) if known else (list(PAUSE), True)


def with_local_programs(word: str, programs: Path) -> str:
    """A word of a command, or a shell script, with the lab's programs in place of paths that only the image has."""

    def local(found: re.Match[str]) -> str:
        own = programs / PurePosixPath(found[0]).name
        return str(own) if not Path(found[0]).exists() and os.access(own, os.X_OK) else found[0]

    return _PATH.sub(local, word)
