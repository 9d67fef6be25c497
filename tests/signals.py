"""Processes that end at an interrupt or a hangup even if the tests themselves ignore both, as with nohup and `&`."""

import signal
from collections.abc import Iterator
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
