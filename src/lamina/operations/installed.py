"""What `lamina install` has to know about a cluster: its version, and the configuration that it has."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY, CONFIG_MAP_NAMESPACE
from lamina.configuration.yaml_documents import load_mapping
from lamina.errors import BadInput
from lamina.ports.kube import CONFIG_MAPS, ConnectedKube, NotFound

_WHERE = f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP}"


class InstalledCluster(NamedTuple):
    version: str
    """As Kubernetes tags it."""
    configuration: str | None
    """The text of the ConfigMap; None where Lamina is not installed."""


class ConfigurationChange(NamedTuple):
    """What an apply does to the configuration of a cluster."""

    keep: bool
    """The ConfigMap is to be left out of what is applied."""
    warning: str


async def read_installed(kube: ConnectedKube) -> InstalledCluster:
    """Raises Outside."""
    version = str((await kube.version())["gitVersion"])
    try:
        found = await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE)
    except NotFound:
        return InstalledCluster(version, None)
    return InstalledCluster(version, str((found.get("data") or {}).get(CONFIG_MAP_KEY, "")))


def configuration_change(config: Mapping[str, Any], text: str | None) -> ConfigurationChange:
    """What values with this configuration do to a cluster with this text.

    A text that was edited in the cluster stays where the values have no configuration.
    """
    if text is None:
        return ConfigurationChange(False, "")
    try:
        live = load_mapping(text, _WHERE)
    except BadInput:
        live = None
    if live == config:
        return ConfigurationChange(False, "")
    if not config:
        return ConfigurationChange(
            True,
            f"{_WHERE} is left out and stays as it is, because the values have no config; "
            "to replace it, set config or edit it with kubectl",
        )
    keys = "" if live is None else f" in {', '.join(_different(config, live))}"
    return ConfigurationChange(
        False, f"{_WHERE} is replaced, and differs from the values{keys}; `lamina config show` prints what it has"
    )


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [
        str(key)
        for key in dict.fromkeys((*one, *other))
        if (key in one) != (key in other) or one.get(key) != other.get(key)
    ]
