"""Which MPS daemons were started, on disk: written before anything is made, and dropped when all of it is gone.

A daemon outlives its agent, and the next agent finds it here with the limits that it should have.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.mps.client_limits import ClientLimits
from lamina.errors import Outside
from lamina.ports.files import Files


class JournaledDaemon(Struct, frozen=True, kw_only=True):
    """One daemon: the MPS directory that it was started in, and its limits. `for_grants`: its clients have grants."""

    root: str
    limits: ClientLimits
    for_grants: bool = False


class DaemonJournal:
    """The daemons of one node, by GPU."""

    def __init__(self, path: Path, files: Files) -> None:
        """Read the journal if it exists. Raises Outside if it cannot be read."""
        self._path = path
        self._files = files
        try:
            self._daemons = msgspec.json.decode(files.read(path) or b"{}", type=dict[str, JournaledDaemon])
        except msgspec.DecodeError as error:
            raise Outside(
                f"cannot read the list of MPS daemons {path}: {error}; end the daemons, set the compute mode of their "
                "GPUs to default, and move the file away"
            ) from error

    def get(self, gpu: str) -> JournaledDaemon | None:
        return self._daemons.get(gpu)

    @property
    def gpus(self) -> frozenset[str]:
        return frozenset(self._daemons)

    def put(self, gpu: str, daemon: JournaledDaemon) -> None:
        """Raises Outside."""
        if self._daemons.get(gpu) != daemon:
            self._write({**self._daemons, gpu: daemon})

    def drop(self, gpu: str) -> None:
        """Raises Outside."""
        self._write({uuid: daemon for uuid, daemon in self._daemons.items() if uuid != gpu})

    def _write(self, daemons: dict[str, JournaledDaemon]) -> None:
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(daemons, order="sorted"), indent=1))
        self._daemons = daemons
