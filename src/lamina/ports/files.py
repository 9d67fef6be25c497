"""The door to the file system: files that are whole or absent, and trees that go without complaint.

A file is written beside its place under a hidden name, brought to the disk and then renamed, so that nobody ever reads
a half of it, whatever happens to the machine. The hidden name ends in `.tmp`, which no reader of a folder of .json,
.yaml or named files takes for one of them; leftovers are found by it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lamina.errors import BadInput, Outside

TEMPORARY = ".tmp"
LOCK = "lock"
"""The file by which a process has a folder to itself."""


class Files:
    """Every call raises Outside when the file system refuses. Tests put a subclass in its place."""

    def read(self, path: Path) -> bytes | None:
        """The content of `path`, or None where there is no such file."""
        try:
            return path.read_bytes()
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
            raise _outside("write", path, error) from error

    def make_folder(self, path: Path, *, mode: int = 0o755) -> None:
        """Make `path` and the folders above it where they are missing, with exactly the permissions `mode`."""
        try:
            for folder in [*reversed(path.parents), path]:
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    folder.chmod(mode)
        except OSError as error:
            raise _outside("make the folder", path, error) from error

    def share_folder(self, path: Path) -> None:
        """Make `path` a folder in which everybody may write, and remove only what is their own."""
        self.make_folder(path)
        try:
            path.chmod(0o1777)
        except OSError as error:
            raise _outside("share", path, error) from error

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
            if path.is_symlink() or path.is_file():
                path.unlink()
            else:
                shutil.rmtree(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _outside("remove", path, error) from error

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


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _outside(doing: str, path: Path, error: OSError) -> Outside:
    return Outside(f"cannot {doing} {path}: {error.strerror or error}")
