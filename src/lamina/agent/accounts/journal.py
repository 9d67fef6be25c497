"""The accounts on disk, so that they go on growing when the agent starts again."""

import logging
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.accounts.book import BookState
from lamina.ports.files import Files

log = logging.getLogger(__name__)

_VERSION = 1


class _File(Struct, frozen=True, kw_only=True):
    version: int
    book: BookState


class AccountJournal:
    """One file, which is always whole."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def read(self) -> BookState:
        """What was written last. Accounts begin at zero where that cannot be used. Raises Outside."""
        content = self._files.read(self._path)
        if content is None:
            return BookState()
        try:
            file = msgspec.json.decode(content, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            log.warning("Accounts of workloads begin at zero, because %s cannot be used: %s", self._path, problem)
            return BookState()
        if file.version != _VERSION:
            log.warning("Accounts of workloads begin at zero, because %s has version %s", self._path, file.version)
            return BookState()
        return file.book

    def write(self, book: BookState) -> None:
        """Raises Outside."""
        self._files.write(self._path, msgspec.json.encode(_File(version=_VERSION, book=book)))
