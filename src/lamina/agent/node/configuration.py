"""Lamina's configuration, from a file or the cluster's ConfigMap, and its changes.

All parts of the agent depend on it, so with another configuration all parts start again, as after a restart of the
process. An invalid text is refused, and the previous configuration stays in force. That one is on disk, so that it
stays in force across restarts too and containers can start meanwhile.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from lamina import configuration
from lamina.agent.state.last_good_file import LastGoodFile
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY, CONFIG_MAP_NAMESPACE, Config
from lamina.configuration.config_map import text_in
from lamina.errors import BadInput
from lamina.ports import user_files
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, Kube, NotFound, follow
from lamina.ports.polling import FailureLog
from lamina.ports.set_aside import SetAside

log = logging.getLogger(__name__)

ReadText = Callable[[], str]
"""Returns the text of a configuration. Raises BadInput where a ConfigMap has it under another key."""
FILE_POLL_S = 2.0
KIND = "configuration"
"""The kind under which a refused configuration is set aside."""


class ConfigurationSource:
    """The file `path` or, if that is None, the ConfigMap. `last_good` is where the last accepted text is stored."""

    def __init__(
        self, kube: Kube, path: Path | None, clock: Clock, last_good: Path, files: Files, aside: SetAside
    ) -> None:
        self._kube = kube
        self._path = path
        self._clock = clock
        self._aside = aside
        self._last_good: LastGoodFile[str] = LastGoodFile(
            last_good, files, encode=str.encode, decode=lambda content: _valid_text(content, last_good)
        )
        self._stored_at = last_good
        self._name = str(path) if path else f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP}, {CONFIG_MAP_KEY}"

    async def read(self) -> Config:
        """The configuration; the default if there is no ConfigMap. If it is refused, the last accepted one.

        Raises BadInput if there is none of that either, and Outside.
        """
        read_text = await (self._read_config_map() if self._path is None else _read_file(self._path))
        try:
            text = read_text()
            config = configuration.load(text, self._name)
        except Exception as problem:
            accepted = self._last_good.read()
            if accepted is None:
                raise
            self._refuse(problem)
            return configuration.load(accepted, self._name)
        self._store(text)
        return config

    async def next_change(self, current: Config) -> Config:
        """The next valid configuration that differs from `current`. A removed file or ConfigMap changes nothing."""
        async for read_text in self._file_texts(self._path) if self._path else self._config_map_texts():
            try:
                text = read_text()
                config = configuration.load(text, self._name)
            except Exception as problem:
                self._refuse(problem)
                continue
            self._aside.forget(KIND, self._name)
            self._store(text)
            if config != current:
                log.info("The configuration changed: %s", self._name)
                return config
        raise AssertionError("a watch never ends")

    def _refuse(self, problem: Exception) -> None:
        if self._aside.add(KIND, self._name, problem):
            log.error("Refused the configuration; the last accepted one stays in force: %s", problem)

    def _store(self, text: str) -> None:
        """A disk that refuses has no other effect."""
        with self._aside.around(KIND, str(self._stored_at)):
            self._last_good.write(text)

    async def _file_texts(self, path: Path) -> AsyncIterator[ReadText]:
        failures = FailureLog(log, "Keeping the current configuration: %s")
        while True:
            try:
                yield await _read_file(path)
            except BadInput as problem:
                failures.failed(problem)
            else:
                failures.succeeded()
            await self._clock.sleep(FILE_POLL_S)

    async def _config_map_texts(self) -> AsyncIterator[ReadText]:
        fields = f"metadata.name={CONFIG_MAP}"
        async for event in follow(self._kube, self._clock, CONFIG_MAPS, namespace=CONFIG_MAP_NAMESPACE, fields=fields):
            if event.kind in ("ADDED", "MODIFIED"):
                yield partial(text_in, event.object)

    async def _read_config_map(self) -> ReadText:
        try:
            return partial(text_in, await self._kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE))
        except NotFound:
            return str


def _valid_text(content: bytes, path: Path) -> str:
    text = content.decode(errors="replace")
    configuration.load(text, str(path))
    return text


async def _read_file(path: Path) -> ReadText:
    return partial(str, await asyncio.to_thread(user_files.read_text, path, "the configuration"))
