"""A lock on a slot of a usage file, as the facade of a living process holds it."""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked_slot(usage: Path, at: int = 4096) -> Iterator[None]:
    """A process lives for as long as the block runs. The lock is that of an open file, so this process may hold it."""
    file = os.open(usage, os.O_RDWR)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
        yield
    finally:
        os.close(file)
