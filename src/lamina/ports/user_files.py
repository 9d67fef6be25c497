"""Files that people name, on a command line or in a setting: what is wrong with one is a BadInput of one sentence.

`what` says in the message what the file is, such as the option that names it.
"""

from pathlib import Path

from lamina.errors import BadInput


def read_text(path: Path, what: str = "") -> str:
    """The text in a file. Raises BadInput."""
    try:
        return read_bytes(path, what).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{_named(path, what)} is not UTF-8 text") from error


def read_bytes(path: Path, what: str = "") -> bytes:
    """The content of a file. Raises BadInput."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {_named(path, what)}: {error.strerror}") from error


def write(path: Path, content: bytes, what: str = "") -> None:
    """Write a file, over one that is there. Raises BadInput."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise BadInput(f"cannot write {_named(path, what)}: {error.strerror}") from error


def check_writable(path: Path, what: str = "") -> None:
    """Leaves everything as it is. Raises BadInput where `write` would."""
    try:
        existed = path.exists()
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise BadInput(f"cannot write {_named(path, what)}: {error.strerror}") from error


def write_new_folder(folder: Path, files: dict[str, str], what: str = "") -> None:
    """Make a folder with files, by relative path. Raises BadInput, also where the folder exists."""
    try:
        folder.mkdir(parents=True)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except FileExistsError as error:
        raise BadInput(f"{_named(folder, what)} already exists; choose a new directory") from error
    except OSError as error:
        raise BadInput(f"cannot write {_named(folder, what)}: {error.strerror}") from error


def _named(path: Path, what: str) -> str:
    return f"{what} {path}" if what else str(path)
