"""Kills processes that outlived their supervisor.

There are two cases. If a shim was killed, its processes become children of the kubelet, the next subreaper. If the
kubelet and its shims were killed together, the remaining processes carry the marker, and the next kubelet kills them.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lamina_lab.host.processes import carrying
from lamina_lab.kubelet.containers.shim import PR_SET_CHILD_SUBREAPER, children_of, prctl

KILL_PASSES = 200


def become_subreaper() -> None:
    """From now on, orphans below this process become its children."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_marked(marker: Mapping[str, str]) -> int:
    """Kill every process that carries all variables of `marker`. Returns how many were found."""
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
    """Kill and reap children of this process that are not `known`. Returns how many were found."""
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
