"""A process that takes a lease on a file, as the root user of a container may."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOLDER = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
try:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError as error:
    print(error.strerror, flush=True)
else:
    print("leased", flush=True)
    sys.stdin.read()
"""


@contextmanager
def lease(path: Path) -> Iterator[str]:
    """Whether a lease could be taken, "leased" or why not; it is held for as long as the block runs."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        try:
            yield holder.stdout.readline().strip()
        finally:
            holder.kill()
