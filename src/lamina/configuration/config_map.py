"""The configuration in the cluster's ConfigMap: its text, and the text that is in force while that one is refused.

The controller writes the text that it has accepted into an annotation, so that commands know the configuration in
force also while the text in the ConfigMap is refused.
"""

from collections.abc import Mapping
from typing import Any

from lamina.configuration.loader import DEFAULT, load
from lamina.errors import BadInput
from lamina.model.config import CONFIG_MAP, CONFIG_MAP_KEY, CONFIG_MAP_NAMESPACE, Config
from lamina.name_hints import closest

NAME = f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP}"
IN_FORCE = "lamina.dev/configuration-in-force"
"""The annotation with the text that was accepted last."""
MAX_RECORDED = 128 * 1024
"""Bytes of a text that is recorded there; the annotations of an object may have 256 KiB."""


def text_in(config_map: Mapping[str, Any]) -> str:
    """The text of the configuration. Raises BadInput where it is under another key, which nothing reads."""
    data = config_map.get("data") or {}
    others = sorted(key for key in data if key != CONFIG_MAP_KEY)
    misspelled = [key for key in others if closest(key, (CONFIG_MAP_KEY,))] or (
        [] if CONFIG_MAP_KEY in data else others
    )
    if misspelled:
        raise BadInput(f"{NAME}: unknown data key {misspelled[0]}; rename it to {CONFIG_MAP_KEY}")
    return str(data.get(CONFIG_MAP_KEY, ""))


def in_force(config_map: Mapping[str, Any]) -> tuple[Config, str]:
    """The configuration in force, and why the text in the ConfigMap is refused, empty if it is not."""
    try:
        return load(text_in(config_map), NAME), ""
    except BadInput as problem:
        refusal = str(problem)
    recorded = ((config_map.get("metadata") or {}).get("annotations") or {}).get(IN_FORCE)
    try:
        return (DEFAULT if recorded is None else load(recorded, NAME)), refusal
    except BadInput:  # by an older release, or by hand
        return DEFAULT, refusal
