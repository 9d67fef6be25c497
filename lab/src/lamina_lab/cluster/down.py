"""Stop a lab and remove everything it created, whatever state it is in."""

import contextlib
import os
import signal
import time

from lamina_lab.host import leftovers, processes, status
from lamina_lab.host.directory import LabDirectory, lab_directory

STOP_S = 15.0
"""Containers get their grace period within this time. What is left then is killed."""


def down(name: str) -> bool:
    """Stop the lab `name`. Returns False if there is none."""
    directory = lab_directory(name)
    if not directory.root.exists():
        return False
    _stop_supervisor(directory)
    leftovers.sweep(directory)
    leftovers.remove(directory)
    return True


def _stop_supervisor(directory: LabDirectory) -> None:
    """Ask the supervisor to stop, and wait until it and its guard are gone."""
    written = status.read(directory)
    if written is None or not written.pid or not processes.carries(directory.root, written.pid):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(written.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while time.monotonic() < deadline and directory.root.exists() and any(processes.marked(directory.root)):
        time.sleep(0.05)
