"""A file that a container writes, `usage` or `signal`, as its node's agent has it: opened once, kept open, and kept as
it was made.

Its tenants may write anything into it, change its size, mode and owner, and take a lease on it. While it is open for
writing the kernel grants no lease on it and executes it for no one.

The facade of each process holds a lock on its slot for as long as the process lives, and the kernel shows it across
namespaces. No process of another container can open the file.
"""

import fcntl
import os
import stat
import struct
from contextlib import suppress
from pathlib import Path

from lamina.enforcement.container_files import open_file
from lamina.errors import BadInput

OWNER = (1 << 31) + (1 << 16)
"""User and group that usage files belong to, where the agent may change owners. No container can be started as this
user: Kubernetes accepts IDs up to 2^31 - 1 and assigns user namespaces below. So its mode bits are those for others,
and as a setuid program the file would give no rights."""
MODE = 0o666


class OpenUsage:
    """The open file. Every call raises OSError."""

    def __init__(self, path: Path, size: int) -> None:
        self._name, self._size = path.name, size
        self._file = open_file(path, os.O_RDWR)
        found = os.fstat(self._file)
        self._owner = found.st_uid
        self.inode = found.st_ino

    def read(self, size: int, offset: int) -> bytes:
        return os.pread(self._file, size, offset)

    def write(self, content: bytes, offset: int) -> None:
        os.pwrite(self._file, content, offset)

    def take_over(self) -> None:
        """Make the file OWNER's, whatever its tenants have made of it before it was opened."""
        give_away(self._file)
        self._owner = os.fstat(self._file).st_uid

    def changes(self) -> tuple[str, ...]:
        """What its tenants have changed of the file: size, owner, mode.

        Raises BadInput where it has become shorter: processes that use it end when they touch what is gone, and would
        take zeros in its place for an empty account.
        """
        found = os.fstat(self._file)
        if found.st_size < self._size:
            raise BadInput(f"a process has cut off its {self._name} file")
        same = {
            "size": found.st_size == self._size,
            "owner": found.st_uid == self._owner,
            "mode": stat.S_IMODE(found.st_mode) == MODE,
        }
        return tuple(name for name in same if not same[name])

    def restore(self) -> bool:
        """Undo what its tenants have changed of the file, which takes as long as one of them holds it. Returns whether
        there was something. Raises BadInput where it has become shorter."""
        changes = self.changes()
        if "size" in changes:
            os.ftruncate(self._file, self._size)
        if {"owner", "mode"} & {*changes}:
            with suppress(PermissionError):
                os.fchown(self._file, os.geteuid(), os.getegid())  # only an owner may change modes without CAP_FOWNER
            os.fchmod(self._file, MODE)
            give_away(self._file)
        return bool(changes)

    def close(self) -> None:
        os.close(self._file)


def give_away(file: int) -> None:
    """Make an open file OWNER's. Without CAP_CHOWN, or in a user namespace without that ID, it stays whose it is."""
    with suppress(OSError):
        os.fchown(file, OWNER, OWNER)


_FLOCK = "hhqqi4x"
"""struct flock: type, whence, start, length, pid."""


def is_in_use(usage: Path) -> bool:
    """Whether a living process has a lock or a lease on the file. True where that is not certain."""
    try:
        file = open_file(usage, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        whole_file = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_ = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_OFD_GETLK, whole_file))
        return bool(kind != fcntl.F_UNLCK)
    except OSError:
        return True
    finally:
        os.close(file)
