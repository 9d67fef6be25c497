"""What ends a run's processes when the run itself was killed and can end nothing any more.

It is a process of its own that holds the read end of a pipe, whose write end only the run has. A run that ends by
itself writes a word first; where the pipe closes without it, the processes that carry the run's folder in their
environment are killed, whatever their parent is, and the folder is removed, with the files elsewhere that name it. Run
by its path, since it has to begin quickly and needs nothing of this package: `python -I -S run_reaper.py FOLDER
[FILE...]`, with the pipe as standard input.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

DONE = b"."
_END_S, _LOOK_S = 5.0, 0.02


def watch(folder: str, files: Sequence[str]) -> None:
    """Wait for the run's end, and clean up behind it where it could not."""
    if os.read(0, 1) == DONE:
        return
    deadline = time.monotonic() + _END_S
    while (pids := list(carrying(folder))) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_S)
    remove_files(folder, files)
    shutil.rmtree(folder, ignore_errors=True)


def remove_files(folder: str, files: Iterable[str]) -> None:
    """Remove those of the files that name the folder: others were made by another run."""
    for file in map(Path, files):
        with contextlib.suppress(OSError):
            if folder in file.read_text():
                file.unlink()


def carrying(folder: str) -> Iterator[int]:
    """The PIDs of the processes that have the run's folder in their environment."""
    variable = f"LAMINA_DIR={folder}".encode()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if entry.name.isdigit() and variable in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2:])
