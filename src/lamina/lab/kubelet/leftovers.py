"""Processes that outlived their supervisor: found below the kubelet or by the marker in their environment, and killed.

Two ways lead here. A shim was killed: what it looked after now belongs to the kubelet, which is the next subreaper.
The kubelet and shims were killed together: what is left carries the marker, and the kubelet that comes next ends it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lamina.lab.kubelet.shim import PR_SET_CHILD_SUBREAPER, children_of, prctl
from lamina.lab.processes import carrying

KILL_PASSES = 200


def become_subreaper() -> None:
    """From now on, orphans below this process become its children."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_marked(marker: Mapping[str, str]) -> int:
    """Kill every process that carries all variables of `marker`; returns how many were met."""
    met: set[int] = set()
    for _ in range(KILL_PASSES):
        found = list(carrying(marker))
        if not found:
            break
        met.update(found)
        _kill(found)
        time.sleep(0.005)
    return len(met)


def kill_adopted(known: Callable[[], set[int]]) -> int:
    """Kill and collect what became this process's child without being `known`; returns how many were met."""
    met: set[int] = set()
    for _ in range(KILL_PASSES):
        roots = _children(os.getpid()) - known()
        if not roots:
            break
        family = [pid for root in roots for pid in (root, *children_of(root))]
        met.update(family)
        _kill(family)
        for pid in roots:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.002)
    return len(met)


def _children(parent: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{parent}/task").iterdir():
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
