"""The facade as containers see it: one folder per version on the node, never changed once it is there.

Running containers have the files of their version mapped; a newer agent puts a newer version beside them. The version
carries a part of the content's hash, so that two builds of one release do not meet in one folder.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import lamina
from lamina.agent.cdi import Mount
from lamina.agent.settings import LIBRARIES
from lamina.errors import Outside
from lamina.ports.files import Files

PRELOAD = "ld.so.preload"


class Libraries(NamedTuple):
    """An installed facade."""

    folder: Path
    version: str

    def mounts(self) -> list[Mount]:
        """The libraries at their versioned place, and the loader's list that names them."""
        inside = f"/usr/local/lamina/{self.version}"
        libraries = [Mount(self.folder / library, f"{inside}/{library}") for library in LIBRARIES]
        return [*libraries, Mount(self.folder / PRELOAD, "/etc/ld.so.preload")]


def install(facade: Path, into: Path, files: Files) -> Libraries:
    """Put the libraries of the folder `facade` below `into`, unless they are there. Raises Outside."""
    contents = {}
    for library in LIBRARIES:
        content = files.read(facade / library)
        if content is None:
            raise Outside(f"{facade / library} is gone")
        contents[library] = content
    digest = hashlib.sha256(b"".join(contents[library] for library in LIBRARIES)).hexdigest()[:8]
    version = f"{lamina.__version__}-{digest}"
    installed = Libraries(into / version, version)
    listed = "".join(f"/usr/local/lamina/{version}/{library}\n" for library in LIBRARIES)
    for name, content in {**contents, PRELOAD: listed.encode()}.items():
        if files.read(installed.folder / name) != content:
            files.write(installed.folder / name, content, mode=0o555 if name in LIBRARIES else 0o444)
    return installed
