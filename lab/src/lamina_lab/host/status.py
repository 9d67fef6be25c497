"""The status file of a lab: its supervisor's process id, its phase, and the URL of its API.

Whether a lab runs is not read from this file but from a lock that the supervisor holds. The kernel releases the lock
however the supervisor ends, so that a crashed lab is recognized without trusting a process id.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

from lamina_lab.host.directory import LabDirectory


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPING = "stopping"


class Status(Struct, frozen=True, kw_only=True):
    """The content of the file. `message` says what the start is waiting for, or why it failed."""

    phase: Phase
    message: str = ""
    pid: int = 0
    url: str = ""


def write(directory: LabDirectory, status: Status) -> None:
    """Replace the file atomically."""
    temporary = directory.status.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(status))
    temporary.replace(directory.status)


def read(directory: LabDirectory) -> Status | None:
    """The status, or None if it cannot be read."""
    try:
        return msgspec.json.decode(directory.status.read_bytes(), type=Status)
    except (OSError, msgspec.MsgspecError):
        return None


@contextlib.contextmanager
def lock(directory: LabDirectory, *, timeout_s: float = 0.0) -> Iterator[bool]:
    """Hold the lab's lock. Yields False if another process holds it for longer than `timeout_s`.

    `is_running` holds the lock for a moment, so a supervisor needs a timeout.
    """
    handle = os.open(directory.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + timeout_s
    try:
        while not (held := _locked(handle)) and time.monotonic() < deadline:
            time.sleep(0.01)
        yield held
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_running(directory: LabDirectory) -> bool:
    """Whether a supervisor runs the lab."""
    if not directory.root.is_dir():
        return False
    with lock(directory) as acquired:
        return not acquired
