"""The accounts on disk, so that they go on growing when the agent starts again."""

import logging
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.chargeback.book import EMPTY, BookState
from lamina.agent.chargeback.histories import ContainerHistory
from lamina.ports.files import Files

log = logging.getLogger(__name__)

_VERSION = 1


class WrittenAccounts(Struct, frozen=True, kw_only=True):
    """The accounts of workloads, and the histories of their containers."""

    book: BookState = EMPTY
    histories: tuple[ContainerHistory, ...] = ()


NOTHING_WRITTEN = WrittenAccounts()


class _File(WrittenAccounts, frozen=True, kw_only=True):
    version: int


class AccountJournal:
    """One file, which is always whole."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def read(self) -> WrittenAccounts:
        """What was written last. Accounts begin at zero where that cannot be used. Raises Outside."""
        content = self._files.read(self._path)
        if content is None:
            return NOTHING_WRITTEN
        try:
            file = msgspec.json.decode(content, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            log.warning("Accounts of workloads begin at zero, because %s cannot be used: %s", self._path, problem)
            return NOTHING_WRITTEN
        if file.version != _VERSION:
            log.warning("Accounts of workloads begin at zero, because %s has version %s", self._path, file.version)
            return NOTHING_WRITTEN
        return WrittenAccounts(book=file.book, histories=file.histories)

    def write(self, accounts: WrittenAccounts) -> None:
        """Raises Outside."""
        self._files.write(
            self._path, msgspec.json.encode(_File(version=_VERSION, book=accounts.book, histories=accounts.histories))
        )
