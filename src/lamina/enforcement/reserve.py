"""What is free in the small file system of `usage` files, kept in a file, so that no container can enlarge its own.

Pages go from the reserve to a file when that is made. A container may take some of them in the moment between, and
loses them when its file is restored; then the reserve has them again.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = ".reserve"
_FREE = 16
"""This part of the file system stays free: full ones are reported by what watches the node."""
_TRIES = 32
_PAGE = 4096


def make_reserve(folder: Path) -> None:
    """From now on the file system of this directory has a reserve. Raises OSError."""
    os.close(os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def fill_reserve(folder: Path) -> None:
    """Take what is free, if there is a reserve."""
    with suppress(OSError), _opened(folder) as file:
        found = os.fstatvfs(file)
        free = (found.f_bavail - found.f_blocks // _FREE) * found.f_frsize
        if free > 0:
            os.posix_fallocate(file, os.fstat(file).st_size, free)


def allocate(file: int, size: int, folder: Path) -> None:
    """Give an open file all of its pages, from the reserve of `folder` if there is one. Raises OSError."""
    for _ in range(_TRIES):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno != errno.ENOSPC or not _give(folder, size + _PAGE):
                raise
    os.posix_fallocate(file, 0, size)


def _give(folder: Path, size: int) -> bool:
    """Free so much of the reserve. Returns whether there was something."""
    try:
        with _opened(folder) as file:
            kept = os.fstat(file).st_size
            os.ftruncate(file, max(0, kept - size))
            return kept > 0
    except FileNotFoundError:
        return False


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    file = os.open(folder / NAME, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)
