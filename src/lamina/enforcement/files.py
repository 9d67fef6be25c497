"""Writing a container's three files."""

import ctypes
import os
import secrets
from pathlib import Path

from lamina.enforcement import layout
from lamina.enforcement.limits import Limits, encode
from lamina.enforcement.usage import new_usage, uuids_of
from lamina.errors import BadInput, Outside

LIMITS, USAGE, ARBITER = "limits", "usage", "arbiter"
_READ_ONLY, _SHARED, _WRITTEN_BY_US = 0o444, 0o666, 0o644


def write_container(folder: Path, limits: Limits) -> None:
    """Makes `limits`, `usage` and `arbiter` in the folder, each in one step.

    Usage and arbiter for the same GPUs stay as they are, since running processes have mapped them. Raises BadInput
    for limits that nobody could be held to, and Outside when the file system refuses; then the old files are whole.
    """
    content = encode(limits)
    uuids = tuple(device.uuid for device in limits.devices)
    try:
        if _uuids_in(folder / USAGE) != uuids:
            _replace(folder / ARBITER, new_arbiter(len(uuids)), _WRITTEN_BY_US, ctypes.sizeof(layout.Arbiter))
            _replace(folder / USAGE, new_usage(uuids, secrets.randbits(63)), _SHARED, layout.usage_bytes(len(uuids)))
        _replace(folder / LIMITS, content, _READ_ONLY, len(content))
    except OSError as error:
        raise Outside(f"cannot write limits, usage and arbiter in {folder}: {error.strerror}") from error


def new_arbiter(devices: int) -> bytes:
    """An arbiter file in which nothing was decided yet."""
    return bytes(layout.Arbiter(magic=layout.ARBITER_MAGIC, version=layout.VERSION, device_count=devices))


def _uuids_in(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            return uuids_of(file.read(ctypes.sizeof(layout.Usage)), path.stat().st_size)
    except (FileNotFoundError, BadInput):
        return ()


def _replace(path: Path, content: bytes, mode: int, size: int) -> None:
    """The disk space is taken at once: a program that touches a page for which there is none would be killed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
        os.pwrite(file, content, 0)
        os.fchmod(file, mode)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
