"""Holds all processes that a command starts, whatever they fork, leave or put into their environment.

Processes that lose their parent become children of the keeper, which the kernel alone decides: no process outside can
claim to be one of them, and none of them can leave. The keeper notes who it is before it starts the command, and on
SIGTERM ends everything that it has; a child that has ended keeps its PID until its parent has asked for it, so no other
process is ever hit. It ends when no child is left.

Run by its path, since it has to stay small and needs nothing of this package: `python -I -S keeper.py RECORD COMMAND
...`. That ends when the command does, with its exit code; the keeper itself lives on in a session of its own.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_AGAIN_S = 0.05
_START, _STATE, _PARENT = 19, 0, 1
"""Which of the fields after the name in /proc/PID/stat are these."""
_WAITED_FOR = frozenset({signal.SIGCHLD, signal.SIGTERM})
_IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
_IGNORED = frozenset({signal.SIGHUP, signal.SIGINT}) | _IGNORED_BY_PYTHON


def identity(pid: int) -> str:
    """What distinguishes a process from every other one that ever has its PID; empty if it has ended."""
    try:
        fields = _stat(pid)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except (OSError, IndexError):
        return ""
    return "" if fields[_STATE] in "ZX" else f"{boot} {namespace} {pid} {fields[_START]}"


def main(record: Path, command: Sequence[str]) -> int:
    """Start the keeper with the command. Returns the command's exit code when it has ended."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        ended = os.read(reading, 1)
        return ended[0] if ended else 1
    os.close(reading)
    os.setsid()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    # Which of its own signals Python found ignored cannot be known: it ignores them itself.
    changed = [each for each in _IGNORED if signal.signal(each, signal.SIG_IGN) is not signal.SIG_IGN]
    try:
        _keep(record, command, writing, {*changed, *_IGNORED_BY_PYTHON}, blocked)
    except OSError as error:
        print(f"{record}: {error.strerror}", file=sys.stderr, flush=True)
        _report(writing, 127)
    os._exit(0)


def _keep(record: Path, command: Sequence[str], report: int, unignored: Set[signal.Signals], blocked: Set[int]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    draft = record.with_name(f".{record.name}.tmp")
    draft.write_text(identity(os.getpid()))
    draft.rename(record)
    first = os.fork()  # posix_spawn would leave signals of the C library ignored
    if first == 0:
        _execute(command, unignored, blocked)
    os.chdir("/")
    silent = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(silent, each)
    ending = False
    while _has_children(first, report):
        if ending:
            for pid in _children():
                os.kill(pid, signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, _AGAIN_S)
        else:
            ending = signal.sigwait(_WAITED_FOR) == signal.SIGTERM


def _execute(command: Sequence[str], unignored: Set[signal.Signals], blocked: Set[int]) -> None:
    """Run the command with the signals ignored and blocked that are so for who started the keeper."""
    for each in unignored:
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127)


def _has_children(first: int, report: int) -> bool:
    """Ask for those that have ended, and report the exit code of the first."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            if pid == first:
                code = os.waitstatus_to_exitcode(status)
                _report(report, code if code >= 0 else 128 - code)
    except ChildProcessError:
        return False


def _report(to: int, code: int) -> None:
    with suppress(BrokenPipeError):  # who started the keeper has given it up
        os.write(to, bytes([code]))


def _children() -> Iterator[int]:
    own = str(os.getpid())
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if _stat(int(entry.name))[_PARENT] == own:
                    yield int(entry.name)
            except (OSError, IndexError):
                continue  # it has ended, and its parent has asked for it


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
