"""The facade as containers see it: one directory per version on the node, never changed after it is written.

Running containers have the files of their version mapped, and a newer agent installs a newer version next to them. The
version contains part of the content's hash, so that two builds of one release have different directories. A version
that no CDI spec names any more is unused and removed.
"""

import hashlib
import logging
from pathlib import Path
from typing import NamedTuple

import lamina
from lamina.agent.containers import cdi
from lamina.agent.containers.cdi import Hook, Mount
from lamina.agent.state.settings import COVER, DRIVER, LIBRARIES
from lamina.enforcement.facade_copy import fitted_to
from lamina.errors import Outside
from lamina.ports.files import Files

log = logging.getLogger(__name__)

PRELOAD = "ld.so.preload"
_PROGRAMS = (*LIBRARIES, COVER)


class FacadeLibraries(NamedTuple):
    """An installed facade."""

    folder: Path
    version: str

    def mounts(self) -> list[Mount]:
        """The libraries at their versioned path, and the loader's list that names them."""
        inside = f"/usr/local/lamina/{self.version}"
        libraries = [Mount(self.folder / name, f"{inside}/{name}", executable=True) for name in LIBRARIES]
        return [*libraries, Mount(self.folder / PRELOAD, "/etc/ld.so.preload")]

    def hook(self) -> Hook:
        """Mounts the libraries over the driver's files in a container."""
        return Hook(self.folder / COVER, (str(self.folder),))


def install_libraries(facade: Path, into: Path, files: Files, driver: Path) -> FacadeLibraries:
    """Install the files of the directory `facade` below `into`, for the driver in the directory `driver`.

    Files that are there stay. A driver with other functions gets a version of its own. Raises Outside.
    """
    contents = {}
    for program in _PROGRAMS:
        content = files.read(facade / program)
        if content is None:
            raise Outside(f"the facade's file {facade / program} does not exist")
        contents[program] = fitted_to(content, driver / program) if program in DRIVER else content
    digest = hashlib.sha256(b"".join(contents[program] for program in _PROGRAMS)).hexdigest()[:8]
    version = f"{lamina.__version__}-{digest}"
    installed = FacadeLibraries(into / version, version)
    listed = "".join(f"/usr/local/lamina/{version}/{library}\n" for library in LIBRARIES)
    files.make_folder(installed.folder)
    for name, content in {**contents, PRELOAD: listed.encode()}.items():
        if not _has(files, installed.folder / name, content):
            files.write(installed.folder / name, content, mode=0o555 if name in _PROGRAMS else 0o444)
    return installed


def _has(files: Files, path: Path, content: bytes) -> bool:
    """A file that cannot be read now, because a container has a lease on it, is replaced by a new one."""
    try:
        return files.read(path) == content
    except Outside:
        return False


def remove_unused(current: FacadeLibraries, specs: Path, files: Files) -> None:
    """Remove the versions that neither this agent nor a spec in the directory `specs` uses. Raises Outside.

    A container that was started from a spec may restart from it until the spec is rewritten or removed.
    """
    root = current.folder.parent
    old = [version for version in files.names(root) if version != current.version]
    if not old:
        return
    texts = [files.read(specs / name) or b"" for name in files.names(specs) if cdi.name_of_file(name)]
    for version in old:
        if not any(f'"{root / version}/'.encode() in text for text in texts):
            log.info("Removing version %s of the facade: no container uses it", version)
            files.remove_tree(root / version)
