"""Writing a container's files."""

import ctypes
import os
import secrets
import time
from pathlib import Path

from lamina.enforcement import layout
from lamina.enforcement.container_files import open_file
from lamina.enforcement.limits import Limits, encode
from lamina.enforcement.open_usage import MODE, give_away
from lamina.enforcement.reserve import allocate
from lamina.enforcement.usage import new_usage, uuids_of
from lamina.errors import BadInput, Outside

LIMITS, USAGE, ARBITER, SIGNAL = "limits", "usage", "arbiter", "signal"
NEIGHBORS = "neighbors"
"""A directory with the signals of other containers that this one heeds."""
_READ_ONLY, _WRITTEN_BY_US = 0o444, 0o644


def write_container(folder: Path, limits: Limits) -> None:
    """Makes the files in the folder, each in one step, and the directory for signals.

    For the same GPUs all but the limits stay as they are, since running processes have mapped them. Raises BadInput for
    limits that cannot be enforced, and Outside when the file system refuses; then the old files are whole.
    """
    content = encode(limits)
    uuids = tuple(device.uuid for device in limits.devices)
    try:
        if _uuids_in(folder / USAGE) != uuids:
            (folder / NEIGHBORS).mkdir(exist_ok=True)
            (folder / NEIGHBORS).chmod(0o755)
            _replace(folder / SIGNAL, new_signal(len(uuids)), MODE, ctypes.sizeof(layout.SignalFile))
            _replace(folder / ARBITER, new_arbiter(len(uuids)), _WRITTEN_BY_US, ctypes.sizeof(layout.ArbiterFile))
            _replace(folder / USAGE, new_usage(uuids, secrets.randbits(63)), MODE, layout.usage_bytes(len(uuids)))
        _replace(folder / LIMITS, content, _READ_ONLY, len(content))
    except OSError as error:
        raise Outside(f"cannot write the files of a container in {folder}: {error.strerror}") from error


def new_arbiter(devices: int) -> bytes:
    """An arbiter file in which nothing was decided yet."""
    return bytes(
        layout.ArbiterFile(
            magic=layout.ARBITER_MAGIC, version=layout.VERSION, device_count=devices, made_at=time.monotonic_ns()
        )
    )


def new_signal(devices: int) -> bytes:
    """A signal of no work."""
    return bytes(layout.SignalFile(magic=layout.SIGNAL_MAGIC, version=layout.VERSION, device_count=devices))


def _uuids_in(path: Path) -> tuple[str, ...]:
    """A file that is leased counts as one of other GPUs, since it cannot be kept without reading it."""
    try:
        with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
            return uuids_of(file.read(ctypes.sizeof(layout.UsageFile)), os.fstat(file.fileno()).st_size)
    except (FileNotFoundError, BlockingIOError, BadInput):
        return ()


def _replace(path: Path, content: bytes, mode: int, size: int) -> None:
    """The disk space is taken at once: a program that touches a page for which there is none would be killed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        allocate(file, size, path.parent.parent)
        os.pwrite(file, content, 0)
        os.fchmod(file, mode)
        if mode == MODE:
            give_away(file)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
