"""The configuration in the cluster's ConfigMap: its text, and the text that is in force while that one is refused.

The controller writes the text that it has accepted into an annotation, so that commands know the configuration in
force also while the text in the ConfigMap is refused.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.configuration.text import DEFAULT, load
from lamina.core.config import CONFIG_MAP, CONFIG_MAP_KEY, Config
from lamina.errors import BadInput
from lamina.name_hints import closest

IN_FORCE = "lamina.dev/configuration-in-force"
"""The annotation with the text that was accepted last."""
SINCE = "lamina.dev/configuration-in-force-since"
"""The annotation that says since when it is in force."""
MAX_RECORDED = 128 * 1024
"""Bytes of a text that is recorded there; the annotations of an object may have 256 KiB."""


def config_map_name(namespace: str) -> str:
    """How sentences name the ConfigMap; without its namespace where a manifest leaves it open."""
    return f"ConfigMap {namespace}/{CONFIG_MAP}" if namespace else f"ConfigMap {CONFIG_MAP}"


def text_in(config_map: Mapping[str, Any]) -> str:
    """The text of the configuration. Raises BadInput where it is under another key, which nothing reads."""
    data = config_map.get("data") or {}
    others = sorted(key for key in data if key != CONFIG_MAP_KEY)
    misspelled = [key for key in others if closest(key, (CONFIG_MAP_KEY,))] or (
        [] if CONFIG_MAP_KEY in data else others
    )
    if misspelled:
        raise BadInput(f"{_name(config_map)}: unknown data key {misspelled[0]}; rename it to {CONFIG_MAP_KEY}")
    return str(data.get(CONFIG_MAP_KEY, ""))


class TextInForce(NamedTuple):
    """The text of a configuration in force. `refusal` is why the text in the ConfigMap is refused, empty if it is not.

    `since` is when the controller put it into force, as RFC 3339; empty where the controller has not recorded that.
    """

    text: str
    config: Config
    refusal: str = ""
    since: str = ""


def in_force(config_map: Mapping[str, Any]) -> TextInForce:
    """The configuration in force; the default where the controller has accepted none."""
    annotations = (config_map.get("metadata") or {}).get("annotations") or {}
    where = _name(config_map)
    recorded, since = annotations.get(IN_FORCE), annotations.get(SINCE, "")
    try:
        text = text_in(config_map)
        return TextInForce(text, load(text, where), "", since if text == recorded else "")
    except BadInput as problem:
        refusal = str(problem)
    try:
        return TextInForce("", DEFAULT, refusal) if recorded is None else _accepted(recorded, where, refusal, since)
    except BadInput:  # by an older release, or by hand
        return TextInForce("", DEFAULT, refusal)


def text_hash(text: str) -> str:
    """Twelve digits by which people compare texts of configurations."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _accepted(text: str, where: str, refusal: str, since: str) -> TextInForce:
    return TextInForce(text, load(text, where), refusal, since)


def _name(config_map: Mapping[str, Any]) -> str:
    metadata = config_map.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    return config_map_name(namespace if isinstance(namespace, str) else "")
