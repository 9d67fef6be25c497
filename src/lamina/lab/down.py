"""Stop a lab and remove all that it made, whatever state it is in."""

import contextlib
import os
import signal
import time

from lamina.lab import leftovers, processes, status
from lamina.lab.directory import LabDirectory, lab_directory

STOP_S = 15.0
"""Containers get their grace period within this; what is left then is killed."""


def down(name: str) -> bool:
    """Stop the lab `name`. False where there is none."""
    directory = lab_directory(name)
    if not directory.root.exists():
        return False
    _ask(directory)
    leftovers.sweep(directory)
    leftovers.remove(directory)
    return True


def _ask(directory: LabDirectory) -> None:
    """Ask the supervisor to stop, and wait until it and its guard are gone."""
    account = status.read(directory)
    if account is None or not account.pid or not processes.carries(directory.root, account.pid):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(account.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while time.monotonic() < deadline and directory.root.exists() and any(processes.marked(directory.root)):
        time.sleep(0.05)
