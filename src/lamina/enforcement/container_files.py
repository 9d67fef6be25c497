"""Files that containers can write or reach: opened without waiting, and called in a thread apart.

A process of the container may take a lease on a file, also where it may only read it. Others that open the file then
wait for up to `fs.lease-break-time`, 45 seconds by default. So these files are opened without waiting, and read again
later.

While a process writes to a file or enlarges it, the kernel lets no other process change it, and on some file systems
none read it. The process chooses how much it writes, so that may take seconds. So each call of the arbiter on such a
file is made in a thread apart from the loop that needs its answer, and has a short time. A file whose call takes longer
is left to that thread, and another thread makes the calls that follow. A call that has no processor is waited for: that
is not the file's fault.
"""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lamina.errors import NotYet


def open_file(path: Path, flags: int) -> int:
    """A descriptor of the regular file at `path`. Raises OSError, at once where a process has a lease on the file."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def read_file(path: Path, most: int) -> bytes:
    """The first `most` bytes of the file. Raises OSError."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read(most)


def reason(error: OSError) -> str:
    """Why a file could not be opened or read."""
    return "a process has a lease on it" if isinstance(error, BlockingIOError) else error.strerror or str(error)


LIMIT_S = 0.02
_STARVED_S = 0.5
"""For how long a call is waited for that has no processor."""
FileCall = tuple[Hashable, Callable[[], Any]]
"""A file, and a call on it."""
Late = Callable[[Hashable, Any], None]


class TakesLong(NotYet):
    """A call has not returned in its time."""


class _Work:
    """Calls that one thread makes in turn."""

    def __init__(self, calls: Sequence[FileCall]) -> None:
        self.calls = calls
        self.answers: list[Any] = []
        self.begun_at = time.monotonic()
        self.done = threading.Event()
        self._lock = threading.Lock()
        self._left: tuple[set[Hashable], Late] | None = None

    def make(self) -> bool:
        """Make the calls. Returns whether none of them was left."""
        for file, call in self.calls:
            self.begun_at = time.monotonic()
            try:
                answer = call()
            except Exception as error:
                answer = error
            with self._lock:
                if self._left is None:
                    self.answers.append(answer)
            if self._left is not None:
                files, late = self._left
                try:
                    late(file, answer)
                finally:
                    files.discard(file)
                return False
        self.done.set()
        return True

    def leave(self, files: set[Hashable], late: Late) -> bool:
        """Leave the file whose call is under way to this thread; `files` has it until `late` has returned. Returns
        false if all calls have returned."""
        with self._lock:
            if len(self.answers) == len(self.calls):
                return False
            files.add(self.calls[len(self.answers)][0])
            self._left = files, late
            return True


class FileCalls:
    """The calls of one loop, whose thread alone uses this."""

    def __init__(self, *, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._left: set[Hashable] = set()
        self._worker: _Worker | None = None

    def is_left(self, file: Hashable) -> bool:
        """Whether a file is left to a thread, so that no other call may be made on it."""
        return file in self._left

    def make(self, calls: Sequence[FileCall], late: Late = lambda file, answer: None) -> list[Any]:
        """What each call returned, or the exception that it raised; TakesLong for one that took long.

        What such a call returns in the end is given to `late` in its thread, and the file is left to that until it
        returns.
        """
        answers: list[Any] = []
        while len(answers) < len(calls):
            work = _Work(calls[len(answers) :])
            self._worker = worker = self._worker or _Worker()
            worker.work.put(work)
            self._wait(work, worker)
            left = not work.done.is_set() and work.leave(self._left, late)
            answers += work.answers
            if left:
                self._worker = None
                answers.append(TakesLong(f"a process holds it up for more than {self._limit_s * 1000:g} ms"))
        return answers

    def leave(self, file: Hashable, what: Callable[[], None]) -> None:
        """Leave a file to a thread that does `what` is to be done."""
        self._left.add(file)

        def run() -> None:
            try:
                what()
            finally:
                self._left.discard(file)

        threading.Thread(target=run, name="file of a container", daemon=True).start()

    def close(self) -> None:
        """End the thread that waits for calls."""
        if self._worker is not None:
            self._worker.work.put(None)
            self._worker = None

    def _wait(self, work: _Work, worker: "_Worker") -> None:
        """Until all calls have returned, or one has taken too long."""
        wait_s = self._limit_s
        while not work.done.wait(wait_s):
            took = time.monotonic() - work.begun_at
            if took >= self._limit_s and (took > _STARVED_S or not worker.is_starved):
                return
            wait_s = max(self._limit_s / 4, self._limit_s - took)


class _Worker:
    """A thread that makes calls. It ends when a call was left to it."""

    def __init__(self) -> None:
        self.work: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="files of containers", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (work := self.work.get()) is not None and work.make():
            pass

    @property
    def is_starved(self) -> bool:
        """Whether the thread could run and does not, or runs."""
        try:
            stat = Path(f"/proc/self/task/{self._thread.native_id}/stat").read_bytes()
        except OSError:
            return False
        return stat.rpartition(b")")[2].split()[0] == b"R"
