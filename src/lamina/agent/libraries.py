"""The facade as containers see it: one folder per version on the node, never changed once it is there.

Running containers have the files of their version mapped; a newer agent puts a newer version beside them. The version
carries a part of the content's hash, so that two builds of one release do not meet in one folder. A version that no
CDI spec names any more has no container and goes.
"""

import hashlib
import logging
from pathlib import Path
from typing import NamedTuple

import lamina
from lamina.agent import cdi
from lamina.agent.cdi import Hook, Mount
from lamina.agent.settings import COVER, LIBRARIES
from lamina.errors import Outside
from lamina.ports.files import Files

log = logging.getLogger(__name__)

PRELOAD = "ld.so.preload"
_PROGRAMS = (*LIBRARIES, COVER)


class Libraries(NamedTuple):
    """An installed facade."""

    folder: Path
    version: str

    def mounts(self) -> list[Mount]:
        """The libraries at their versioned place, and the loader's list that names them."""
        inside = f"/usr/local/lamina/{self.version}"
        libraries = [Mount(self.folder / library, f"{inside}/{library}") for library in LIBRARIES]
        return [*libraries, Mount(self.folder / PRELOAD, "/etc/ld.so.preload")]

    def cover(self) -> Hook:
        """What puts the libraries over the driver's files of a container."""
        return Hook(self.folder / COVER, (str(self.folder),))


def install(facade: Path, into: Path, files: Files) -> Libraries:
    """Put the programs of the folder `facade` below `into`, unless they are there. Raises Outside."""
    contents = {}
    for program in _PROGRAMS:
        content = files.read(facade / program)
        if content is None:
            raise Outside(f"{facade / program} is gone")
        contents[program] = content
    digest = hashlib.sha256(b"".join(contents[program] for program in _PROGRAMS)).hexdigest()[:8]
    version = f"{lamina.__version__}-{digest}"
    installed = Libraries(into / version, version)
    listed = "".join(f"/usr/local/lamina/{version}/{library}\n" for library in LIBRARIES)
    files.make_folder(installed.folder)
    for name, content in {**contents, PRELOAD: listed.encode()}.items():
        if files.read(installed.folder / name) != content:
            files.write(installed.folder / name, content, mode=0o555 if name in _PROGRAMS else 0o444)
    return installed


def remove_unused(current: Libraries, specs: Path, files: Files) -> None:
    """Remove the versions that neither this agent nor a spec in the folder `specs` uses. Raises Outside.

    A container that was started from a spec may start again from it, until the spec is written anew or goes.
    """
    root = current.folder.parent
    old = [version for version in files.names(root) if version != current.version]
    if not old:
        return
    texts = [files.read(specs / name) or b"" for name in files.names(specs) if cdi.name_in(name)]
    for version in old:
        if not any(f'"{root / version}/'.encode() in text for text in texts):
            log.info("Removing version %s of the facade, which no container uses", version)
            files.remove_tree(root / version)
