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


def _names(signals: Collection[signal.Signals]) -> str:
    return ",".join(each.name for each in signals)


def inherited_by(
    command: Sequence[str], ignored: Collection[signal.Signals], blocked: Collection[signal.Signals]
) -> dict[str, int]:
    """What `command`, which runs SIGNALS, prints when it starts with these. The C library keeps two for itself."""

    ignore = [f"--ignore-signal={_names(ignored)}"] if ignored else []
    block = [f"--block-signal={_names(blocked)}"] if blocked else []
    # Not by `preexec_fn`: with it Python forks, and gRPC in the test's process can abort the child.
    started = ["env", "--default-signal=HUP,INT", *ignore, *block, *command]
    ran = subprocess.run(started, check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    fields = (line.split(":") for line in ran.stdout.splitlines())
    return {name: int(mask, 16) & ~_OF_THE_C_LIBRARY for name, mask in fields}
