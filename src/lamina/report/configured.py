"""The configuration that is in force in a cluster."""

from lamina import configuration
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_NAMESPACE
from lamina.configuration.config_map import TextInForce, in_force
from lamina.ports.kube import CONFIG_MAPS, Kube, NotFound, Object


async def text_in_force(kube: Kube) -> TextInForce:
    """The cluster's configuration; the default where there is no ConfigMap."""
    return configured_by(await read_config_map(kube))


def configured_by(config_map: Object | None) -> TextInForce:
    """The configuration in force with this ConfigMap, or without one."""
    return TextInForce("", configuration.DEFAULT) if config_map is None else in_force(config_map)


async def read_config_map(kube: Kube) -> Object | None:
    """The ConfigMap with the configuration; None where there is none."""
    try:
        return await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE)
    except NotFound:
        return None
