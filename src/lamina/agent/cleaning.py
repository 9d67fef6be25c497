"""What agents leave on a node, for the day when no agent will come back: found, and removed.

CDI specs, the sockets by which kubelet knows our plugins, and what is in the agent's own folder. Nobody else makes
files of these names. What others have stays, also where somebody gave the agent a folder that is not its own.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from lamina.agent.settings import AgentSettings
from lamina.errors import Outside
from lamina.ports.files import TEMPORARY
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
    yield from _kept(state_dir)


def _kept(state_dir: Path) -> Iterator[Path]:
    """The agent's folder where all in it is the agent's, else its files; folders in it may be anybody's then."""
    own = {path.name for path in AgentSettings(node="", state_dir=state_dir).all_kept}
    own |= {f".{name}{TEMPORARY}" for name in own}
    there = {path.name for path in state_dir.iterdir()} if state_dir.is_dir() else None
    if there is not None and there <= own:
        yield state_dir
    else:
        yield from (state_dir / name for name in own & (there or set()) if not (state_dir / name).is_dir())


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
