"""The configuration in force, from a file or from the ConfigMap, and what follows when it changes.

A new text that is invalid is refused with one sentence, and the previous configuration stays in force. An annotation of
the ConfigMap has its text, for commands. `initial` handles the start, when there is no previous one.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from lamina.configuration import CONFIG_MAP as NAME
from lamina.configuration import CONFIG_MAP_KEY as KEY
from lamina.configuration import DEFAULT, Config, load
from lamina.configuration.config_map import (
    IN_FORCE,
    MAX_RECORDED,
    SINCE,
    TextInForce,
    config_map_name,
    in_force,
    text_in,
)
from lamina.errors import BadInput, LaminaError, Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import CONFIG_MAPS, EventRecorder, Kube, NotFound, Object, follow
from lamina.ports.kube.follow import ADDED, MODIFIED
from lamina.ports.kube.moments import rfc3339
from lamina.ports.polling import FailureLog, poll
from lamina.ports.set_aside import SetAside
from lamina.ports.user_files import read_text

log = logging.getLogger(__name__)

_FILE_POLL_S = 2.0
REFUSED = "ConfigurationRefused"
"""The reason of the event on the ConfigMap."""


class LiveConfiguration:
    """Holds the configuration in force as `value`; `listeners` are called when another one comes into force."""

    def __init__(self, value: Config, text: str) -> None:
        self.value = value
        self.listeners: list[Callable[[], None]] = []
        self.text = text
        """The text of the configuration in force."""
        self.refusal = ""
        """Why the newest text is not in force, as a sentence, or nothing."""
        self._text = text

    def update(self, text: str, source: str) -> str:
        """Put `text` into force. Returns why it is refused as a sentence, or nothing."""
        if text == self._text:
            return ""
        self._text = text
        try:
            value = _load(text, source)
        except BadInput as problem:
            self.refusal = str(problem)
            return self.refusal
        self.text, self.refusal = text, ""
        if value != self.value:
            self.value = value
            log.info("The configuration of %s is in force", source)
            for listener in self.listeners:
                listener()
        return ""


async def read_file(path: Path) -> LiveConfiguration:
    """The configuration in a file. Raises BadInput."""
    text = await asyncio.to_thread(read_text, path, "the configuration")
    return LiveConfiguration(_load(text, str(path)), text)


async def config_map_object(kube: Kube) -> Object | None:
    """The ConfigMap with the configuration; None where there is none. Raises Outside."""
    try:
        return await kube.get(CONFIG_MAPS, NAME, namespace=kube.lamina_namespace)
    except NotFound:
        return None


async def read_config_map(kube: Kube) -> LiveConfiguration:
    """The configuration in the ConfigMap; the defaults where there is none. Raises BadInput, Outside."""
    config_map = await config_map_object(kube)
    text = "" if config_map is None else text_in(config_map)
    return LiveConfiguration(_load(text, _source(kube)), text)


async def text_in_force(kube: Kube) -> TextInForce:
    """The cluster's configuration, also where the text in the ConfigMap is refused. Raises Outside."""
    return configured_by(await config_map_object(kube))


def configured_by(config_map: Object | None) -> TextInForce:
    """The configuration in force with this ConfigMap; the default without one."""
    return TextInForce("", DEFAULT) if config_map is None else in_force(config_map)


async def read_source(path: Path | None, kube: Kube) -> LiveConfiguration:
    """The configuration in the file or, without one, in the ConfigMap. Raises BadInput, Outside."""
    return await read_config_map(kube) if path is None else await read_file(path)


def place_of(path: Path | None, kube: Kube) -> tuple[str, str]:
    """The kind and the name of the configuration in this file or, without one, in the ConfigMap."""
    return (CONFIG_MAPS.plural, f"{kube.lamina_namespace}/{NAME}") if path is None else ("configuration", str(path))


def refuse(set_aside: SetAside, place: tuple[str, str], refusal: str) -> None:
    """Say once why the newest text in that place is refused; nothing if `refusal` is empty."""
    kind, name = place
    if not refusal:
        set_aside.forget(kind, name)
    elif set_aside.add(kind, name, BadInput(refusal)):
        log.error("Refused the configuration; the last accepted one stays in force: %s", refusal)


async def follow_file(path: Path, configuration: LiveConfiguration, clock: Clock, set_aside: SetAside) -> None:
    """Update the configuration whenever the file changes, until canceled."""

    async def update() -> None:
        configuration.update(await asyncio.to_thread(read_text, path, "the configuration"), str(path))
        refuse(set_aside, ("configuration", str(path)), configuration.refusal)

    failures = FailureLog(log, "The configuration is unchanged: %s")
    await poll(update, clock, every_s=_FILE_POLL_S, delay_s=_FILE_POLL_S, failures=failures, on=BadInput)


async def wait_for_valid_config_map(
    kube: Kube, clock: Clock, events: EventRecorder | None, refused: Callable[[str], None]
) -> LiveConfiguration:
    """The ConfigMap's configuration, as soon as it is valid. `refused` is called with each reason why it is not."""
    async for kind, obj in follow(
        kube, clock, CONFIG_MAPS, namespace=kube.lamina_namespace, fields=f"metadata.name={NAME}"
    ):
        if kind not in (ADDED, MODIFIED):
            continue
        try:
            text = text_in(obj)
            return LiveConfiguration(_load(text, _source(kube)), text)
        except BadInput as problem:
            refused(str(problem))
            if events is not None:
                await events.record(CONFIG_MAPS, obj, REFUSED, str(problem), warning=True)
    raise AssertionError("following a ConfigMap never ends")


async def follow_config_map(
    kube: Kube, clock: Clock, configuration: LiveConfiguration, events: EventRecorder | None, set_aside: SetAside
) -> None:
    """Update the configuration whenever the ConfigMap changes, until canceled. Deleting it changes nothing.

    With `events`, a refusal and the text in force are published: one program of a replica does so.
    """
    async for kind, obj in follow(
        kube, clock, CONFIG_MAPS, namespace=kube.lamina_namespace, fields=f"metadata.name={NAME}"
    ):
        if kind in (ADDED, MODIFIED) and obj["metadata"]["name"] == NAME:
            problem = _update(configuration, obj, _source(kube))
            refuse(set_aside, place_of(None, kube), configuration.refusal)
            if events is not None:
                await _record(kube, obj, configuration.text, clock.wall(), set_aside)
            if events is not None and problem:
                await events.record(CONFIG_MAPS, obj, REFUSED, problem, warning=True)


async def follow_source(
    path: Path | None,
    kube: Kube,
    clock: Clock,
    configuration: LiveConfiguration,
    events: EventRecorder | None,
    set_aside: SetAside,
) -> None:
    """Follow the file or, without one, the ConfigMap, until canceled."""
    if path is not None:
        await follow_file(path, configuration, clock, set_aside)
    else:
        await follow_config_map(kube, clock, configuration, events, set_aside)


def _source(kube: Kube) -> str:
    return f"{config_map_name(kube.lamina_namespace)}, {KEY}"


def _load(text: str, source: str) -> Config:
    """The configuration in a text. Raises BadInput, also for a text on which `load` itself fails."""
    try:
        return load(text, source)
    except LaminaError:
        raise
    except Exception as error:
        log.exception("The configuration of %s cannot be read", source)
        raise BadInput(f"{source} cannot be read: {type(error).__name__}: {error}") from error


def _update(configuration: LiveConfiguration, config_map: Object, source: str) -> str:
    """Put the text in the ConfigMap into force. Returns why it is refused as a sentence, or nothing."""
    try:
        return configuration.update(text_in(config_map), source)
    except BadInput as problem:
        configuration.refusal = str(problem)
        return configuration.refusal


async def _record(kube: Kube, config_map: Object, text: str, now: float, set_aside: SetAside) -> None:
    """Write the text in force and since when into annotations of the ConfigMap, where commands find them.

    Without them commands still work.
    """
    annotations = config_map["metadata"].get("annotations") or {}
    if annotations.get(IN_FORCE) == text or len(text.encode()) > MAX_RECORDED:
        return
    try:
        changed = {IN_FORCE: text, SINCE: rfc3339(now)}
        await kube.patch(CONFIG_MAPS, NAME, {"metadata": {"annotations": changed}}, namespace=kube.lamina_namespace)
    except Outside as error:
        set_aside.add("annotation", f"{kube.lamina_namespace}/{NAME}", error)
