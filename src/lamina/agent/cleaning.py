"""What agents leave on a node, for the day when no agent will come back: found, and removed.

CDI specs, the sockets by which kubelet knows our plugins, and the agent's own folder. Nobody else makes files of these
names. Folders of others, such as the one with all CDI specs, stay.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from lamina.errors import Outside
from lamina.ports.kubelet.registration import PLUGIN_FOLDER

SPECS, SOCKETS = "lamina.dev-*", "lamina-*.sock"


def left(*, kubelet_dir: Path, cdi_dir: Path, state_dir: Path) -> list[Path]:
    """What there is, files before the folder. Raises Outside where that cannot be seen."""
    try:
        return sorted(_left(kubelet_dir, cdi_dir, state_dir))
    except OSError as error:
        raise Outside(f"{error.filename} cannot be read: {error.strerror}") from error


def _left(kubelet_dir: Path, cdi_dir: Path, state_dir: Path) -> Iterator[Path]:
    for pattern in (SPECS, f".{SPECS}"):
        yield from cdi_dir.glob(pattern)
    yield from (kubelet_dir / PLUGIN_FOLDER).glob(SOCKETS)
    if state_dir.exists():
        yield state_dir


def remove(paths: list[Path]) -> None:
    """Remove them, folders with all that is in them. Raises Outside."""
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise Outside(f"{error.filename} cannot be removed: {error.strerror}") from error
