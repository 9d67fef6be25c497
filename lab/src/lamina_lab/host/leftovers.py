"""Removing what remains of a lab whose supervisor is gone.

A clean stop, the guard of a crashed lab and a second `up` all call `sweep`: it ends every process of the lab, then
removes the sockets and the shared state of its GPUs. Logs stay until the directory is removed.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from lamina_lab.host import processes
from lamina_lab.host.directory import LabDirectory

GRACE_S = 3.0


def sweep(directory: LabDirectory) -> int:
    """End the lab's processes, remove its sockets and shared memory. Returns the number of processes."""
    ended = processes.end_all(directory.root, grace_s=GRACE_S)
    # os.walk skips folders that vanish in the meantime: a guard may be removing the same lab.
    for folder, _, names in os.walk(directory.root):
        for path in (Path(folder) / name for name in names):
            if _is_shared(path):
                path.unlink(missing_ok=True)
    return ended


def _is_shared(path: Path) -> bool:
    if path.name in ("machine", "usage"):
        return True
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(path.lstat().st_mode)
    return False


def remove(directory: LabDirectory) -> None:
    """Remove the lab's directory. No process of the lab may be running."""
    shutil.rmtree(directory.root, ignore_errors=True)
