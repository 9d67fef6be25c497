"""The first process of a sandbox: it waits for the orphans of the others, and ends with the process that opened it.

Its end is the end of all processes of the sandbox, since the kernel kills a PID namespace with its first process;
mounts and interfaces go with the last process that sees them. Run as `python holder.py READ_END`, where nothing is ever
written to the pipe.
"""

import contextlib
import os
import signal
import sys
from types import FrameType


def _wait_for_orphans(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass


def main() -> None:
    signal.signal(signal.SIGCHLD, _wait_for_orphans)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("ready", flush=True)
    while os.read(int(sys.argv[1]), 1):
        pass


if __name__ == "__main__":
    main()
