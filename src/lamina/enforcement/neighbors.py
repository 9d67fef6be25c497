"""The signals of other containers that one container heeds: links in a directory that its programs may only read.

A link appears in a container that runs already, and shows its programs nothing else of the other container. Each has a
number of its own, so that a program sees whether a word means a file that it has mapped.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from lamina.enforcement import layout
from lamina.enforcement.files import NEIGHBORS, SIGNAL

MOST_PAUSE_NS = 2_000_000
"""For how long a container may pause within its work; longer pauses are between requests."""

_DEVICE = layout.NEIGHBOR_BITS
_PAUSE = _DEVICE + layout.NEIGHBOR_DEVICE_BITS


class HeededNeighbor(Struct, frozen=True):
    """A container on a GPU whose work comes first: its folder, which of its GPUs that is, and how long it pauses."""

    folder: Path
    device: int
    pause_ns: int


class Neighbors:
    """The directory of one container."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / NEIGHBORS
        self._numbers: dict[Path, int] = {}

    def clear(self) -> None:
        """Remove the links of an arbiter that decided before."""
        with suppress(OSError):
            for link in list(self._folder.iterdir()):
                link.unlink()

    def words(self, heeded: Sequence[HeededNeighbor]) -> list[int]:
        """The words for `struct lamina_heeded`. One whose signal cannot be linked is left out."""
        found = [_word(self._number(each.folder), each) for each in heeded]
        return [word for word in found if word][: layout.HEEDED]

    def keep(self, known: Mapping[Path, object]) -> None:
        """Remove the links to containers that are gone."""
        for folder in self._numbers.keys() - known.keys():
            with suppress(OSError):
                (self._folder / str(self._numbers[folder])).unlink()
            del self._numbers[folder]

    def _number(self, folder: Path) -> int:
        if folder not in self._numbers:
            number = 1 + secrets.randbelow((1 << layout.NEIGHBOR_BITS) - 1)
            try:
                os.link(folder / SIGNAL, self._folder / str(number), follow_symlinks=False)
            except OSError:
                return 0
            self._numbers[folder] = number
        return self._numbers[folder]


def _word(number: int, heeded: HeededNeighbor) -> int:
    if number == 0:
        return 0
    pause_us = min(heeded.pause_ns, MOST_PAUSE_NS) // 1000
    return number | heeded.device << _DEVICE | pause_us << _PAUSE
