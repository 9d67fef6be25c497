"""Files on the node that nothing accounts for: what the record does not know at the start, and all at uninstall.

At the start, CDI specs of names that the record does not know, and incomplete ones, are removed: kubelet may know such
a name, but no container must start from a spec that nothing accounts for. Container directories that the record does
not know are removed too, unless a pod of this node has their UID, because a running container may use them. If that
cannot be determined, they stay. A name that is bound to a container needs nothing, with or without its spec and
directory: kubelet calls the agent before each start, and everything is made again then.

At uninstall these are CDI specs, the sockets of the device plugins, and the agent's state directory. No other program
makes files with these names. Files of other programs stay, even if they are in the directory that was given to the
agent.
"""

import logging
from fnmatch import fnmatchcase
from pathlib import Path

from lamina.agent.containers import cdi
from lamina.agent.containers.paths import folder_name, folder_names, remove_unused
from lamina.agent.context import NodeContext
from lamina.agent.state.settings import AgentSettings
from lamina.ports.files import TEMPORARY, Files
from lamina.ports.kubelet.servers import PLUGIN_FOLDER, REGISTRY_FOLDER

log = logging.getLogger(__name__)

_KIND = "unknown file"


async def reconcile(node: NodeContext) -> None:
    """Remove unknown files. What cannot be removed is set aside. Raises Outside if directories cannot be listed."""
    record, paths, files = node.record, node.paths, node.files
    names = record.names
    for file in files.names(paths.cdi):
        if cdi.is_ours(file) and cdi.name_of_file(file) not in names:
            log.warning("Removing %s: the record does not know it", file)
            with node.aside.around(_KIND, file):
                files.remove(paths.cdi / file)
    with node.aside.around(_KIND, str(paths.libraries.folder.parent)):
        remove_unused(paths.libraries, paths.cdi, files)
    known = {folder_name(bound.pod_uid, bound.container) for bound in record.containers}
    unknown = [folder for folder in folder_names(paths.containers, files) if folder not in known]
    if not unknown:
        return
    try:
        pod_uids = await node.cluster.list_pod_uids()
    except Exception as error:
        log.warning("Keeping %d directories that the record does not know: cannot list pods: %s", len(unknown), error)
        return
    for folder in unknown:
        if folder.partition("_")[0] in pod_uids:
            log.warning("Keeping %s: the record does not know it, but a pod of this node may use it", folder)
            continue
        log.warning("Removing %s: the record does not know it", folder)
        with node.aside.around(_KIND, folder):
            files.remove_tree(paths.containers / folder)


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
