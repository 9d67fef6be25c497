"""The last configuration that was accepted, on disk, so that it stays in force while a program restarts."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from lamina.config_source.live import LiveConfiguration, place_of, read_source, refuse
from lamina.configuration import load
from lamina.errors import BadInput
from lamina.ports.files import Files
from lamina.ports.kube import Kube
from lamina.ports.set_aside import SetAside

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


async def read_or_last_good(
    path: Path | None, kube: Kube, stored_at: Path, files: Files, set_aside: SetAside
) -> LiveConfiguration:
    """The configuration in a file or the ConfigMap; if it is refused, the last accepted one. Each one that comes into
    force is stored at `stored_at`; a disk that refuses has no other effect.

    Raises BadInput if there is none that was accepted, and Outside.
    """
    stored: LastGoodFile[str] = LastGoodFile(
        stored_at, files, encode=str.encode, decode=lambda content: _valid_text(content, stored_at)
    )
    try:
        configuration = await read_source(path, kube)
    except BadInput as problem:
        text = stored.read()
        if text is None:
            raise
        refuse(set_aside, place_of(path, kube), str(problem))
        configuration = LiveConfiguration(load(text, str(stored_at)), text)

    def store() -> None:
        with set_aside.around("configuration", str(stored_at)):
            stored.write(configuration.text)

    store()
    configuration.listeners.append(store)
    return configuration


def _valid_text(content: bytes, path: Path) -> str:
    text = content.decode(errors="replace")
    load(text, str(path))
    return text
