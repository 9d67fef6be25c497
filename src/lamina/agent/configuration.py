"""The configuration that the agent works by, from a file or from the cluster's ConfigMap, and word of another one.

What follows from it (the resource's name, GPUs, slots, labels) is in every part, so the agent begins anew with another
configuration, as it does after a restart. A text that is not valid is refused, and the configuration before it stays;
its text is kept on the disk, so that it stays over a restart too and containers can start meanwhile.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from lamina.dialects import config as dialect
from lamina.dialects.config import CONFIG_MAP, CONFIG_MAP_KEY, CONFIG_MAP_NAMESPACE, Config
from lamina.errors import BadInput, Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, Kube, NotFound, Object, follow

log = logging.getLogger(__name__)

FILE_EVERY_S = 2.0


class Kept:
    """The text of the configuration that held last, on the disk."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def write(self, text: str) -> None:
        """Keep the text; a disk that refuses costs no more than this."""
        try:
            if self._files.read(self._path) != text.encode():
                self._files.write(self._path, text.encode())
        except Outside as error:
            log.warning("The configuration is not kept: %s", error)

    def config(self) -> Config | None:
        """None where there is none that this release understands. Raises Outside."""
        text = self._files.read(self._path)
        try:
            return None if text is None else dialect.load(text.decode(errors="replace"), str(self._path))
        except BadInput as problem:
            log.warning("%s", problem)
            return None


async def read(kube: Kube, path: Path | None, kept: Kept) -> Config:
    """The configuration in the file `path`, or without one in the ConfigMap; the default where there is none of that.

    Where it is refused, the one that held last. Raises BadInput where there is none, Outside.
    """
    text = await asyncio.to_thread(_text_of, path) if path is not None else await _text_of_map(kube)
    try:
        config = dialect.load(text, _where(path))
    except BadInput as problem:
        before = kept.config()
        if before is None:
            raise
        log.error("The configuration is refused, the one that held last stays in force: %s", problem)
        return before
    kept.write(text)
    return config


async def another(kube: Kube, path: Path | None, present: Config, clock: Clock, kept: Kept) -> Config:
    """The next valid configuration that differs from `present`. That the file or ConfigMap is gone changes nothing."""
    refused = ""
    async for text in _texts_of(path, clock) if path is not None else _texts_in(kube):
        try:
            config = dialect.load(text, _where(path))
        except BadInput as problem:
            if str(problem) != refused:
                log.error("The new configuration is refused, the one before it stays in force: %s", problem)
            refused = str(problem)
            continue
        kept.write(text)
        if config != present:
            log.info("%s has changed", _where(path))
            return config
    raise AssertionError("whoever follows a configuration follows it for ever")


async def _texts_of(path: Path, clock: Clock) -> AsyncIterator[str]:
    while True:
        try:
            yield await asyncio.to_thread(_text_of, path)
        except BadInput as problem:
            log.warning("The configuration stays as it is: %s", problem)
        await clock.sleep(FILE_EVERY_S)


async def _texts_in(kube: Kube) -> AsyncIterator[str]:
    async for told in follow(kube, CONFIG_MAPS, namespace=CONFIG_MAP_NAMESPACE, fields=f"metadata.name={CONFIG_MAP}"):
        if told.kind in ("ADDED", "MODIFIED"):
            yield _text_in(told.object)


async def _text_of_map(kube: Kube) -> str:
    try:
        return _text_in(await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE))
    except NotFound:
        return ""


def _where(path: Path | None) -> str:
    return str(path) if path is not None else f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP}, {CONFIG_MAP_KEY}"


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the configuration {path} cannot be read: {error}") from error


def _text_in(config_map: Object) -> str:
    return str((config_map.get("data") or {}).get(CONFIG_MAP_KEY, ""))
