"""Opening files that the processes of a container can reach.

Such a process may take a lease on a file, also where it may only read it. Others that open the file then wait for up to
`fs.lease-break-time`, 45 seconds by default. So these files are opened without waiting, and read again later.
"""

import errno
import os
import stat
from pathlib import Path


def open_file(path: Path, flags: int) -> int:
    """A descriptor of the regular file at `path`. Raises OSError, at once where a process has a lease on the file."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def read_file(path: Path, most: int) -> bytes:
    """The first `most` bytes of the file. Raises OSError."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read(most)


def reason(error: OSError) -> str:
    """Why a file could not be opened or read."""
    return "a process has a lease on it" if isinstance(error, BlockingIOError) else error.strerror or str(error)
