"""A lab's own account of itself: who runs it, how far it is, and where its API answers.

Whether a lab runs is not read from this account but from a lock that its supervisor holds: the kernel releases it
however the supervisor dies, so a lab that crashed is told from one that runs without trusting a process id.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

from lamina.lab.directory import LabDirectory


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPING = "stopping"


class Status(Struct, frozen=True, kw_only=True):
    """The account. `message` says what is being waited for, or why the start failed."""

    phase: Phase
    message: str = ""
    pid: int = 0
    url: str = ""


def write(directory: LabDirectory, status: Status) -> None:
    """Replace the account as a whole, so that no reader meets half of it."""
    fresh = directory.status.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(status))
    fresh.replace(directory.status)


def read(directory: LabDirectory) -> Status | None:
    """The account, or None where there is none that can be read."""
    try:
        return msgspec.json.decode(directory.status.read_bytes(), type=Status)
    except (OSError, msgspec.MsgspecError):
        return None


@contextlib.contextmanager
def running(directory: LabDirectory, *, patience_s: float = 0.0) -> Iterator[bool]:
    """Hold the lab's lock; yields False where another process holds it longer than `patience_s`.

    Whoever asks `is_running` holds it for a moment, so a supervisor has to have some patience.
    """
    handle = os.open(directory.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience_s
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
    """Whether a supervisor holds the lab at this moment."""
    if not directory.root.is_dir():
        return False
    with running(directory) as free:
        return not free
