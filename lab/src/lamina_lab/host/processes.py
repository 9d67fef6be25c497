"""The processes of a lab: found by the marker in their environment, and ended through pidfds.

A process may have left its session, lost its parent or be stopped; the marker stays. Only its own user can read its
environment. A pidfd keeps naming the same process, even if its id is reused.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from lamina_lab.host.directory import MARKER

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Called in a child before it runs its program: the child gets SIGTERM when its parent dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def carries(root: Path, pid: int) -> bool:
    """Whether the process `pid` is alive and carries the marker of the lab at `root`."""
    return _has_all(_assignments({MARKER: str(root)}), pid)


def marked(root: Path) -> Iterator[int]:
    """Ids of processes that carry the marker of the lab at `root`, except this process."""
    return carrying({MARKER: str(root)})


def carrying(variables: Mapping[str, str]) -> Iterator[int]:
    """Ids of processes with all these variables in their environment, except this process."""
    assignments = _assignments(variables)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _has_all(assignments, int(entry.name)):
            yield int(entry.name)


def _assignments(variables: Mapping[str, str]) -> set[bytes]:
    return {f"{name}={value}".encode() for name, value in variables.items()}


def _has_all(assignments: set[bytes], pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return assignments <= set(environment.split(b"\0"))


def end_all(root: Path, *, grace_s: float, spare: frozenset[int] = frozenset()) -> int:
    """End every process of the lab at `root` except `spare`: SIGTERM, `grace_s` seconds, SIGKILL."""
    signaled: set[int] = set()
    deadline = time.monotonic() + grace_s
    _signal(root, signal.SIGTERM, signaled, spare)
    while time.monotonic() < deadline and any(pid not in spare for pid in marked(root)):
        time.sleep(0.02)
    # A process may fork during the search, so the search is repeated until it finds none.
    for _ in range(100):
        if not _signal(root, signal.SIGKILL, signaled, spare):
            break
        time.sleep(0.02)
    return len(signaled)


def _signal(root: Path, number: signal.Signals, signaled: set[int], spare: frozenset[int]) -> int:
    count = 0
    for pid in marked(root):
        if pid in spare:
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError), _pidfd(pid) as handle:
            # The id may have been reused since the search. From here on the handle names one process.
            if carries(root, pid):
                signal.pidfd_send_signal(handle, number)
                signaled.add(pid)

                count += 1
    return count


@contextlib.contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)
