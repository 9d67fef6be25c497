"""Which daemons were made, on the disk: written before anything is made, and dropped when all of it is gone.

A daemon outlives its agent, and the next agent finds it here with the limits that it was to have.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.mps.limits import Limits
from lamina.errors import Outside
from lamina.ports.files import Files


class Made(Struct, frozen=True, kw_only=True):
    """One daemon: the folder of MPS that it was made under, and its limits."""

    root: str
    limits: Limits


class Kept:
    """The daemons of one node, by GPU."""

    def __init__(self, path: Path, files: Files) -> None:
        """Read what is there. Raises Outside where it cannot be understood."""
        self._path = path
        self._files = files
        try:
            self._made = msgspec.json.decode(files.read(path) or b"{}", type=dict[str, Made])
        except msgspec.DecodeError as error:
            raise Outside(
                f"{path} does not list this agent's MPS daemons ({error}); end them, set the GPUs' compute mode to "
                "default, and move the file away"
            ) from error

    def get(self, gpu: str) -> Made | None:
        return self._made.get(gpu)

    @property
    def gpus(self) -> frozenset[str]:
        return frozenset(self._made)

    def put(self, gpu: str, made: Made) -> None:
        """Raises Outside."""
        if self._made.get(gpu) != made:
            self._write({**self._made, gpu: made})

    def drop(self, gpu: str) -> None:
        """Raises Outside."""
        self._write({uuid: made for uuid, made in self._made.items() if uuid != gpu})

    def _write(self, made: dict[str, Made]) -> None:
        self._files.write(self._path, msgspec.json.format(msgspec.json.encode(made, order="sorted"), indent=1))
        self._made = made
