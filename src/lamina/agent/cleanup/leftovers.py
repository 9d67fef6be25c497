"""What agents leave on a node, found and removed when no agent will come back.

These are CDI specs, the sockets of the device plugins, and the agent's state directory. No other program makes files
with these names. Files of other programs stay, even if they are in the directory that was given to the agent.
"""

from fnmatch import fnmatchcase
from pathlib import Path

from lamina.agent.state.settings import AgentSettings
from lamina.ports.files import TEMPORARY, Files
from lamina.ports.kubelet.servers import PLUGIN_FOLDER, REGISTRY_FOLDER

SPECS, SOCKETS = "lamina.dev-*", "lamina-*.sock"


def find_leftovers(*, kubelet_dir: Path, cdi_dir: Path, state_dir: Path) -> list[Path]:
    """All leftovers, sorted. Raises Outside if a directory cannot be read."""
    files = Files()
    specs = [path for pattern in (SPECS, f".{SPECS}") for path in _matching(files, cdi_dir, pattern)]
    folders = (kubelet_dir / PLUGIN_FOLDER, kubelet_dir / REGISTRY_FOLDER)
    sockets = [path for folder in folders for path in _matching(files, folder, SOCKETS)]
    return sorted([*specs, *sockets, *_state(files, state_dir)])


def _matching(files: Files, folder: Path, pattern: str) -> list[Path]:
    return [folder / name for name in files.names(folder) if fnmatchcase(name, pattern)]


def _state(files: Files, state_dir: Path) -> list[Path]:
    """The state directory if everything in it is the agent's; otherwise the agent's files, but no directories, because
    they may belong to other programs."""
    if not files.has_folder(state_dir):
        return []
    own = {path.name for path in AgentSettings(node="", state_dir=state_dir).all_state_paths}
    own |= {f".{name}{TEMPORARY}" for name in own}
    present = set(files.names(state_dir))
    if present <= own:
        return [state_dir]
    return [state_dir / name for name in own & present if not files.has_folder(state_dir / name)]


def remove_leftovers(paths: list[Path]) -> None:
    """Remove them, directories with their content. Raises Outside."""
    for path in paths:
        Files().remove_tree(path)
