"""Container logs for kubectl, from files in kubelet's format."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

POLL_S = 0.1


class LogRequest(Struct, frozen=True):
    """`tail` counts lines; `since` is a time as the log writes it. None means all."""

    follow: bool = False
    tail: int | None = None
    timestamps: bool = False
    since: str | None = None


def render(entry: bytes, wanted: LogRequest) -> bytes:
    """What kubectl shows of one line of the file; nothing if it is too old."""
    head = entry.split(b" ", 3)
    if len(head) < 4:
        return b""
    time, _, tag, text = head
    if wanted.since is not None and time.decode() < wanted.since:
        return b""
    line = time + b" " + text if wanted.timestamps else text
    return line + b"\n" if tag == b"F" else line


def last_lines(entries: list[bytes], count: int | None) -> list[bytes]:
    """The entries of the last `count` lines; a long line may have several entries."""
    if count is None:
        return entries
    ends = [True, *(entry.split(b" ", 3)[2:3] == [b"F"] for entry in entries)]
    starts = [index for index in range(len(entries)) if ends[index]]
    return entries[starts[-min(count, len(starts))] :] if count and starts else []


async def read(path: Path, wanted: LogRequest, running: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The log at `path`, followed while the container is `running` if requested."""
    older = path.with_name(f"{path.name}.1")
    entries = older.read_bytes().splitlines() if older.exists() else []
    log = _Reader(path)
    try:
        entries += log.entries()
        if shown := b"".join(render(entry, wanted) for entry in last_lines(entries, wanted.tail)):
            yield shown
        while wanted.follow:
            alive = running()  # checked before reading, so that nothing written before the end is missed
            if shown := b"".join(render(entry, wanted) for entry in log.entries()):
                yield shown
            elif not alive:
                return
            else:
                await asyncio.sleep(POLL_S)
    finally:
        log.close()


class _Reader:
    """New entries of a log file that its writer may rotate."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("rb")
        self._rest = b""

    def entries(self) -> list[bytes]:
        data = self._file.read()
        if not data and self._put_aside():
            self._file.close()
            self._file = self._path.open("rb")
            data = self._file.read()
        *entries, self._rest = (self._rest + data).split(b"\n")
        return entries

    def _put_aside(self) -> bool:
        try:
            return os.fstat(self._file.fileno()).st_ino != self._path.stat().st_ino
        except OSError:
            return False

    def close(self) -> None:
        self._file.close()
