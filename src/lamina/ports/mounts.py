"""The port to mounts: what is mounted where, and mount(2) and umount2(2), for which an image needs no program.

Nothing that the agent or its helpers mount may carry programs, devices or setuid files, so every mount has the flags
of `SAFE`.
"""

import ctypes
import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from lamina.errors import Outside
from lamina.ports.host import kernel_lines, kernel_text

SAFE = ("nosuid", "nodev", "noexec")
TMPFS = "tmpfs"
EVERYBODYS, PRIVATE = 0o1777, 0o700
"""Permissions of a file system: everyone may write to it and remove their own files, or only its owner may enter it."""
MAX_FILES = 65536
"""In a tmpfs: files take memory that its size does not count."""
_TABLE = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")
_FLAGS = {"nosuid": 2, "nodev": 4, "noexec": 8}
_REMOUNT, _BIND = 32, 4096
_DETACH, _FOLLOW_NOTHING = 2, 8
"""Of <sys/mount.h>."""


class MountPoint(NamedTuple):
    """One mount: its path, its type of file system, and the flags of this mount."""

    path: str
    kind: str
    flags: frozenset[str]

    @property
    def safe(self) -> bool:
        return self.flags.issuperset(SAFE)


class Mounts(Protocol):
    """The mounts of this process's mount namespace. Paths have no symbolic links. Every call raises Outside."""

    def at(self, path: Path) -> list[MountPoint]:
        """What is mounted at exactly this path; the last one hides the others."""
        ...

    async def tmpfs(self, path: Path, size_mib: int, *, mode: int = EVERYBODYS) -> None:
        """Mount an empty tmpfs of this size at a directory, with these permissions."""
        ...

    async def restrict(self, path: Path) -> None:
        """Mount a directory over itself with the flags of `SAFE`."""
        ...

    async def unmount(self, path: Path) -> None:
        """Remove the last mount at this path, also if it is in use."""
        ...


class LinuxMounts:
    """The real mounts."""

    def at(self, path: Path) -> list[MountPoint]:
        try:
            text = kernel_text(_TABLE)
        except OSError as error:
            raise Outside(f"cannot read {_TABLE}: {error.strerror}") from error
        return [each for each in parse_table(text) if each.path == str(path)]

    async def tmpfs(self, path: Path, size_mib: int, *, mode: int = EVERYBODYS) -> None:
        _mount("lamina", path, TMPFS, _safe(), f"mode={mode:o},size={size_mib}m,nr_inodes={MAX_FILES}")

    async def restrict(self, path: Path) -> None:
        _mount(str(path), path, "", _BIND, "")
        try:
            _mount("", path, "", _REMOUNT | _BIND | _safe(), "")
        except Outside:
            await self.unmount(path)
            raise

    async def unmount(self, path: Path) -> None:
        if _libc().umount2(os.fsencode(path), _DETACH | _FOLLOW_NOTHING) != 0:
            code = ctypes.get_errno()
            why = "not mounted" if code == errno.EINVAL else os.strerror(code)
            raise Outside(f"cannot unmount {path}: {why}")


class FakeMounts:
    """Mounts without a kernel. `table` has the mounts of each path; `refuses` is a sentence with which every change
    fails."""

    def __init__(self) -> None:
        self.table: dict[Path, list[MountPoint]] = {}
        self.sizes: Mapping[Path, int] = {}
        self.refuses = ""

    def at(self, path: Path) -> list[MountPoint]:
        return list(self.table.get(path, ()))

    async def tmpfs(self, path: Path, size_mib: int, *, mode: int = EVERYBODYS) -> None:
        self._add(path, TMPFS)
        self.sizes = {**self.sizes, path: size_mib}

    async def restrict(self, path: Path) -> None:
        self._add(path, "ext4")

    async def unmount(self, path: Path) -> None:
        self._check(path)
        left = self.table.pop(path)[:-1]
        if left:
            self.table[path] = left

    def _add(self, path: Path, kind: str) -> None:
        self._check(path)
        self.table.setdefault(path, []).append(MountPoint(str(path), kind, frozenset(SAFE)))

    def _check(self, path: Path) -> None:
        if self.refuses:
            raise Outside(self.refuses)
        if not path.is_dir():
            raise Outside(f"mount: {path}: mount point does not exist.")


def parse_table(text: str) -> list[MountPoint]:
    """The mounts in the text of /proc/self/mountinfo; lines of another form are skipped."""
    found = []
    for line in kernel_lines(text):
        mount, dash, filesystem = line.partition(" - ")
        fields = mount.split(" ")
        if dash and len(fields) >= 6:
            kind = filesystem.partition(" ")[0]
            found.append(MountPoint(_unescape(fields[4]), kind, frozenset(fields[5].split(","))))
    return found


def _unescape(path: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), path)


def _mount(source: str, path: Path, kind: str, flags: int, data: str) -> None:
    words = (os.fsencode(source), os.fsencode(path), kind.encode() or None)
    if _libc().mount(*words, ctypes.c_ulong(flags), data.encode() or None) != 0:
        raise Outside(f"cannot mount {kind or 'a directory'} at {path}: {os.strerror(ctypes.get_errno())}")


def _safe() -> int:
    return sum(_FLAGS[flag] for flag in SAFE)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
