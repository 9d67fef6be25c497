"""Whether a process uses a container's usage file, by the locks on it.

The facade of each process holds a lock on its slot for as long as the process lives, and the kernel shows it across
namespaces. No process of another container can open the file.
"""

import fcntl
import os
import struct
from pathlib import Path

from lamina.enforcement.container_files import open_file

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
