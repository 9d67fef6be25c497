"""The processes of a lab."""

import os
import signal
from pathlib import Path

from tests.scenarios.labs import Lab
from tests.waiting import wait_until


def process_of(lab: Lab, *words: str) -> int | None:
    """The process of this lab whose command line has all these words."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if set(words) <= set(command) and any(str(lab.root / lab.name) in word for word in command):
            return int(folder.name)
    return None


def kill(lab: Lab, *words: str) -> None:
    """Kill it, and wait until another one is there."""
    killed = process_of(lab, *words)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: process_of(lab, *words) not in (None, killed), lambda: f"{words} did not come back")
