"""The last configuration that was accepted, on disk, so that it stays in force across restarts."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from lamina.errors import BadInput
from lamina.ports.files import Files

log = logging.getLogger(__name__)

T = TypeVar("T")


class LastGoodFile(Generic[T]):
    """`encode` and `decode` convert the value to and from the file's content; `decode` raises BadInput."""

    def __init__(self, path: Path, files: Files, *, encode: Callable[[T], bytes], decode: Callable[[bytes], T]) -> None:
        self._path = path
        self._files = files
        self._encode = encode
        self._decode = decode

    def read(self) -> T | None:
        """None if there is no file or this release cannot decode it. Raises Outside."""
        content = self._files.read(self._path)
        if content is None:
            return None
        try:
            return self._decode(content)
        except Exception as problem:
            trace = None if isinstance(problem, BadInput) else problem
            log.warning("Ignoring %s: %s", self._path, problem, exc_info=trace)
            return None

    def write(self, value: T) -> None:
        """Store the value unless the file already holds it. Raises Outside."""
        content = self._encode(value)
        if self._files.read(self._path) != content:
            self._files.write(self._path, content)
