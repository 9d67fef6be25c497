"""The configuration in force, from a file or from the ConfigMap, and what follows when it changes.

A new text that is not valid is refused in one sentence, and the configuration before it stays in force. What happens
at the start, when there is none before it, is told in `beginning`.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from lamina.dialects.config import CONFIG_MAP as NAME
from lamina.dialects.config import CONFIG_MAP_KEY as KEY
from lamina.dialects.config import CONFIG_MAP_NAMESPACE as NAMESPACE
from lamina.dialects.config import Config, load
from lamina.errors import BadInput
from lamina.ports.kube import CONFIG_MAPS, EventRecorder, Kube, NotFound, Object, follow
from lamina.ports.kube.follow import ADDED, MODIFIED

log = logging.getLogger(__name__)

_WHERE = f"ConfigMap {NAMESPACE}/{NAME}, {KEY}"
_FILE_EVERY_S = 2.0
REFUSED = "ConfigurationRefused"
"""The reason of the event on the ConfigMap."""


class Configuration:
    """Holds the configuration in force as `value`; `listeners` are called when another one comes into force."""

    def __init__(self, value: Config, text: str) -> None:
        self.value = value
        self.listeners: list[Callable[[], None]] = []
        self._text = text

    def offer(self, text: str, where: str) -> str:
        """Put `text` in force. Returns the sentence that says why not, or nothing."""
        if text == self._text:
            return ""
        self._text = text
        try:
            value = load(text, where)
        except BadInput as problem:
            log.error("The new configuration is refused, the one before it stays in force: %s", problem)
            return str(problem)
        if value != self.value:
            self.value = value
            log.info("%s is in force", where)
            for listener in self.listeners:
                listener()
        return ""


async def read_file(path: Path) -> Configuration:
    """The configuration in a file. Raises BadInput."""
    text = await asyncio.to_thread(_text_of, path)
    return Configuration(load(text, str(path)), text)


async def read_config_map(kube: Kube) -> Configuration:
    """The configuration in the ConfigMap; the defaults where there is none. Raises BadInput, Outside."""
    try:
        text = _text_in(await kube.get(CONFIG_MAPS, NAME, namespace=NAMESPACE))
    except NotFound:
        text = ""
    return Configuration(load(text, _WHERE), text)


async def follow_file(path: Path, configuration: Configuration) -> None:
    """Offer the file's text whenever it changes. Runs until it is cancelled."""
    while True:
        await asyncio.sleep(_FILE_EVERY_S)
        try:
            text = await asyncio.to_thread(_text_of, path)
        except BadInput as problem:
            log.warning("The configuration stays as it is: %s", problem)
            continue
        configuration.offer(text, str(path))


async def valid_config_map(kube: Kube, events: EventRecorder, refused: Callable[[str], None]) -> Configuration:
    """The ConfigMap's configuration, as soon as it is valid. `refused` is told the sentences that say why it is not."""
    async for kind, obj in follow(kube, CONFIG_MAPS, namespace=NAMESPACE, fields=f"metadata.name={NAME}"):
        if kind not in (ADDED, MODIFIED):
            continue
        try:
            text = _text_in(obj)
            return Configuration(load(text, _WHERE), text)
        except BadInput as problem:
            refused(str(problem))
            await events.record(CONFIG_MAPS, obj, REFUSED, str(problem), warning=True)
    raise AssertionError("whoever follows a ConfigMap follows it for ever")


async def follow_config_map(kube: Kube, configuration: Configuration, events: EventRecorder) -> None:
    """Offer the ConfigMap's text whenever it changes; its removal changes nothing. Runs until it is cancelled."""
    async for kind, obj in follow(kube, CONFIG_MAPS, namespace=NAMESPACE, fields=f"metadata.name={NAME}"):
        if kind in (ADDED, MODIFIED) and obj["metadata"]["name"] == NAME:
            problem = configuration.offer(_text_in(obj), _WHERE)
            if problem:
                await events.record(CONFIG_MAPS, obj, REFUSED, problem, warning=True)


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text in UTF-8") from error


def _text_in(config_map: Object) -> str:
    return str((config_map.get("data") or {}).get(KEY, ""))
