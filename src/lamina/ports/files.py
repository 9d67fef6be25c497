"""The port to the file system: files that are whole or absent, and trees that go without complaint.

A file is written next to its path under a hidden name, synced and then renamed, so that a reader never sees
a half of it, whatever happens to the machine. The hidden name ends in `.tmp`, which no reader of a folder of .json,
.yaml or named files takes for one of them; leftovers are found by it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lamina.errors import BadInput, Outside

TEMPORARY = ".tmp"
LOCK = "lock"
"""The file by which a process has a folder to itself."""
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Where a process has a lease on a file, opening it fails at once."""


class Files:
    """Every call raises Outside when the file system refuses. Tests put a subclass in its place.

    `selinux_type` is the SELinux type of the folders that it makes, which the kernel gives to the files in them too;
    empty leaves that to the kernel.
    """

    def __init__(self, selinux_type: str = "") -> None:
        self._selinux_type = selinux_type

    def read(self, path: Path) -> bytes | None:
        """The content of `path`, or None where there is no such file. A lease on it is an error at once."""
        try:
            with os.fdopen(os.open(path, _READING), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _outside("read", path, error) from error

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        """Put `content` at `path` in one step, with exactly the permissions `mode`."""
        temporary = path.with_name(f".{path.name}{TEMPORARY}")
        try:
            self.make_folder(path.parent)
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
            _sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):  # on a full disk, what was written of it only takes more of the space
                temporary.unlink(missing_ok=True)
            raise _outside("write", path, error) from error

    def make_folder(self, path: Path, *, mode: int = 0o755) -> None:
        """Make `path` and the folders above it where they are missing, with exactly the permissions `mode`."""
        try:
            for folder in [*reversed(path.parents), path]:
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    folder.chmod(mode)
                    self.label(folder)
        except OSError as error:
            raise _outside("make the folder", path, error) from error

    def label(self, folder: Path) -> None:
        """Give a folder the SELinux type, without categories, so that any container may read what is in it.

        Source: setxattr(2), and `security.selinux` in xattr(7).
        """
        if self._selinux_type:
            context = f"system_u:object_r:{self._selinux_type}:s0\0"
            try:
                os.setxattr(folder, "security.selinux", context.encode())
            except OSError as error:
                raise _outside(f"set the SELinux type {self._selinux_type} of", folder, error) from error

    def make_private_folder(self, path: Path) -> None:
        """Make `path` a folder that only its owner can enter, also if it exists already."""
        self.make_folder(path.parent)
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            path.chmod(0o700)
        except OSError as error:
            raise _outside("make the folder", path, error) from error
        self.label(path)

    def share_folder(self, path: Path) -> None:
        """Make `path` a folder in which everybody may write, and remove only what is their own."""
        self.make_folder(path)
        try:
            path.chmod(0o1777)
        except OSError as error:
            raise _outside("share", path, error) from error

    def keep_short(self, path: Path, max_bytes: int) -> None:
        """Move what a program has logged to `path` into the file of that name with .1, once it is larger than this.

        The program keeps the file open, so it is emptied in place. Of the old file the last `max_bytes` are kept.
        """
        try:
            with suppress(FileNotFoundError), path.open("r+b") as file:
                if (size := os.fstat(file.fileno()).st_size) > max_bytes:
                    file.seek(size - max_bytes)
                    path.with_name(f"{path.name}.1").write_bytes(file.read(max_bytes))
                    file.truncate(0)
        except OSError as error:
            raise _outside("shorten", path, error) from error

    def names(self, folder: Path) -> list[str]:
        """The names in `folder`, sorted; none where there is no such folder."""
        try:
            return sorted(entry.name for entry in folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _outside("list", folder, error) from error

    def remove(self, path: Path) -> None:
        """Remove the file `path` if it is there."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _outside("remove", path, error) from error

    def remove_tree(self, path: Path) -> None:
        """Remove `path` and all below it if it is there. Links are removed, not followed."""
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            raise _outside("remove", path, error) from error

    def has_file(self, path: Path) -> bool:
        """Whether there is a file at `path`, or a link to one."""
        return path.is_file()

    def has_folder(self, path: Path) -> bool:
        """Whether there is a folder at `path`, or a link to one."""
        return path.is_dir()

    def identity(self, path: Path) -> tuple[int, int, int] | None:
        """What tells the file at `path` from another one of the same name; None where there is none."""
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_ctime_ns

    @contextmanager
    def only_user(self, folder: Path) -> Iterator[None]:
        """Have `folder` to oneself for as long as the block runs. Raises BadInput where another process has it.

        The kernel ends the claim with the process, however that ends.
        """
        self.make_folder(folder)
        try:
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _outside("open", folder / LOCK, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise BadInput(f"{folder} is in use by another process; give each agent a folder of its own") from error
        try:
            yield
        finally:
            os.close(descriptor)


def in_use(folder: Path) -> bool:
    """Whether a process has `folder` to itself. Raises Outside."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _outside("open", folder / LOCK, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def kept_open(folder: Path) -> Iterator[None]:
    """Keep all files below `folder` open while the block runs: the kernel grants no lease on a file that is open, and
    one on a file that several containers have would stop all of them where they open it."""
    with ExitStack() as stack:
        for path in folder.rglob("*"):
            if path.is_file():
                with suppress(OSError):
                    stack.callback(os.close, os.open(path, _READING))
        yield


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _outside(doing: str, path: Path, error: OSError) -> Outside:
    return Outside(f"cannot {doing} {path}: {error.strerror or error}")
