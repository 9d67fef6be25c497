"""The processes of a lab, found by the marker in their environment and ended without asking who their parent is.

A process of a lab may have left its session, lost its parent or be stopped; the marker stays. Its environment is
readable to its own user only, and a process id is acted upon only together with its start time, through a pidfd.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from lamina.lab.directory import MARKER

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Called in a child before it runs its program: SIGTERM when the parent dies, however it dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def carries(root: Path, pid: int) -> bool:
    """Whether the process `pid` carries the marker of the lab at `root`; a dead one does not."""
    return _has_all(_assignments({MARKER: str(root)}), pid)


def marked(root: Path) -> Iterator[int]:
    """Process ids that carry the marker of the lab at `root`, this process left out."""
    return carrying({MARKER: str(root)})


def carrying(variables: Mapping[str, str]) -> Iterator[int]:
    """Process ids with all these variables in their environment, this process left out."""
    wanted = _assignments(variables)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _has_all(wanted, int(entry.name)):
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
    """End every process of the lab at `root` but `spare`: SIGTERM, `grace_s` seconds, SIGKILL. Returns how many."""
    met: set[int] = set()
    deadline = time.monotonic() + grace_s
    _signal(root, signal.SIGTERM, met, spare)
    while time.monotonic() < deadline and any(pid not in spare for pid in marked(root)):
        time.sleep(0.02)
    # A process may fork while it is being looked for, so the search is repeated until it finds nobody.
    for _ in range(100):
        if not _signal(root, signal.SIGKILL, met, spare):
            break
        time.sleep(0.02)
    return len(met)


def _signal(root: Path, number: signal.Signals, met: set[int], spare: frozenset[int]) -> int:
    count = 0
    for pid in marked(root):
        if pid in spare:
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError), _pidfd(pid) as handle:
            # The id may have passed to another process since the search; what the handle names now, it keeps naming.
            if carries(root, pid):
                signal.pidfd_send_signal(handle, number)
                met.add(pid)
                count += 1
    return count


@contextlib.contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)
