"""Clean up after a lab, however its supervisor ends.

The supervisor holds the write end of a pipe and never writes. When it ends, by a clean stop, a crash or SIGKILL, the
kernel closes that end and the guard wakes up: it ends the lab's processes, and after a clean stop it removes the
directory.
Run as `python -m lamina_lab.cluster.guard DIRECTORY READ_END`.
"""

import os
import signal
import sys
from pathlib import Path

from lamina_lab.host import leftovers, status
from lamina_lab.host.directory import LabDirectory
from lamina_lab.host.status import Phase


def watch(directory: LabDirectory, read_end: int) -> None:
    """Return when the supervisor is gone and its leftovers are removed."""
    while os.read(read_end, 1):
        pass
    leftovers.sweep(directory)
    written = status.read(directory)
    if written is not None and written.phase is Phase.STOPPING:
        leftovers.remove(directory)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch(LabDirectory(Path(sys.argv[1])), int(sys.argv[2]))


if __name__ == "__main__":
    main()
