"""CDI specs of MIG devices: one for each set of devices that kubelet gave to a container.

The name follows from the set, so that a spec can be written again at any time. It goes when one of its devices has
gone.
"""

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

from lamina.agent import cdi
from lamina.ports.files import Files

KIND = "lamina.dev/mig"
_PREFIX = "lamina.dev-mig_"


def name_of(uuids: Iterable[str]) -> str:
    return hashlib.sha256(",".join(sorted(uuids)).encode()).hexdigest()[:32]


class Specs:
    """The specs in a node's CDI folder."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files

    def write(self, uuids: Collection[str]) -> str:
        """Make the spec of a set of devices; its name. Raises Outside."""
        name = name_of(uuids)
        content = cdi.spec(name, {cdi.VISIBLE: ",".join(sorted(uuids))}, (), kind=KIND)
        self._files.write(self._folder / f"{_PREFIX}{name}.json", content)
        return name

    def sweep(self, there: Collection[str]) -> None:
        """Remove the specs of devices that are not there. Raises Outside."""
        for file in self._files.names(self._folder):
            if not file.startswith(_PREFIX):
                continue
            named = cdi.visible(self._files.read(self._folder / file) or b"")
            if not named or not set(named) <= set(there):
                self._files.remove(self._folder / file)
