"""Removes what would outlive a cluster: control groups and files.

The runner holds the write end of a pipe and writes a letter to it when files are to be kept. However it ends, the
kernel closes that end; the sandboxes end by the same means, and the guard waits for them.
Run as `python guard.py READ_END FOLDER GROUP`. It uses nothing of the project, since that may be gone by then.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PATIENCE_S = 30.0


def groups(name: str) -> list[Path]:
    """The cluster's groups in all hierarchies, the innermost first."""
    tops = [path / name for path in (CGROUPS, *CGROUPS.iterdir()) if (path / name).is_dir() and not path.is_symlink()]
    inside = [Path(folder) for top in tops for folder, _, _ in os.walk(top)]
    return sorted(inside, key=lambda path: len(path.parts), reverse=True)


def remove_groups(name: str) -> list[Path]:
    """Those that cannot be removed because something still runs in them."""
    left = []
    for group in groups(name):
        try:
            group.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            left.append(group)
    return left


def sweep(folder: Path, group: str, *, keep: bool) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while remove_groups(group) and time.monotonic() < deadline:
        time.sleep(0.1)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    read_end, folder, group = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    print("ready", flush=True)
    output = b""
    while got := os.read(read_end, 1):
        output += got
    sweep(folder, group, keep=bool(output))


if __name__ == "__main__":
    main()
