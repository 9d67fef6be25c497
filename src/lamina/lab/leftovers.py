"""What remains of a lab whose supervisor is gone, and taking it away.

`sweep` is what a clean stop, the guard of a crashed lab and a second `up` all call: first every process of the lab
ends, then the sockets and the shared state of its GPUs go. Logs stay until the directory itself is removed.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from lamina.lab import processes
from lamina.lab.directory import LabDirectory

GRACE_S = 3.0


def sweep(directory: LabDirectory) -> int:
    """End all processes of the lab, remove its sockets and shared memory. Returns how many processes were met."""
    met = processes.end_all(directory.root, grace_s=GRACE_S)
    # os.walk passes over folders that vanish meanwhile: a guard may be sweeping the same lab.
    for folder, _, names in os.walk(directory.root):
        for path in (Path(folder) / name for name in names):
            if _is_shared(path):
                path.unlink(missing_ok=True)
    return met


def _is_shared(path: Path) -> bool:
    if path.name in ("machine", "usage"):
        return True
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(path.lstat().st_mode)
    return False


def remove(directory: LabDirectory) -> None:
    """Remove the lab's directory; nothing of it is running any more."""
    shutil.rmtree(directory.root, ignore_errors=True)
