"""Clean up behind a lab, however its supervisor ends.

The supervisor holds the write end of a pipe and never writes. When it ends, by a clean stop, a crash or SIGKILL, the
kernel closes that end and the guard wakes up: it sweeps the lab, and removes the directory if the stop was meant.
Run as `python -m lamina.lab.guard DIRECTORY READ_END`.
"""

import os
import signal
import sys
from pathlib import Path

from lamina.lab import leftovers, status
from lamina.lab.directory import LabDirectory
from lamina.lab.status import Phase


def watch(directory: LabDirectory, read_end: int) -> None:
    """Return once the supervisor is gone and the lab is swept."""
    while os.read(read_end, 1):
        pass
    leftovers.sweep(directory)
    account = status.read(directory)
    if account is not None and account.phase is Phase.STOPPING:
        leftovers.remove(directory)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch(LabDirectory(Path(sys.argv[1])), int(sys.argv[2]))


if __name__ == "__main__":
    main()
