"""Which signals processes have: those of tests under nohup and `&`, and what a command inherits."""

import signal
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def signals_received() -> Iterator[None]:
    """For starting a process: what is ignored stays so over an exec, and a shell cannot even set a trap for it."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


SIGNALS = ("grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status")
"""A command that prints which signals it blocks, ignores and catches."""
INHERITED = [
    (ignored, blocked)
    for ignored in ((), (signal.SIGHUP,), (signal.SIGINT,), (signal.SIGHUP, signal.SIGINT))
    for blocked in ((), (signal.SIGHUP, signal.SIGUSR1), (signal.SIGTERM, signal.SIGCHLD))
]
"""Which signals a program may find ignored and blocked when it starts."""
_OF_THE_C_LIBRARY = 1 << 31 | 1 << 32


def inherited_by(command: Sequence[str], ignored: Collection[int], blocked: Collection[int]) -> dict[str, int]:
    """What `command`, which runs SIGNALS, prints when it starts with these. The C library keeps two for itself."""

    def inherit() -> None:
        for each in (signal.SIGHUP, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    ran = subprocess.run(command, check=True, timeout=60, preexec_fn=inherit, stdout=subprocess.PIPE, text=True)
    fields = (line.split(":") for line in ran.stdout.splitlines())
    return {name: int(mask, 16) & ~_OF_THE_C_LIBRARY for name, mask in fields}
