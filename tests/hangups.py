"""Processes that end at a hangup although whoever started the tests ignores it, as nohup does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hangups_heard() -> Iterator[None]:
    """For starting a process: what is ignored stays so over an exec, and a shell cannot even set a trap for it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
