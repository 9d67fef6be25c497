"""Where Lamina is installed in a cluster, and what else `lamina install` has to know: the version of the cluster, whose
the namespace is, and the configuration that it has.

The record of an installation is the binding by which its controller has its rights: no installation works without it,
and a cluster has one. The label of Lamina on a namespace says that `lamina install` created that.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.configuration.config_map import config_map_name
from lamina.configuration.yaml_documents import load_mapping
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import BadInput
from lamina.install.names import CONTROLLER, PART_OF, labels
from lamina.ports.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    NAMESPACES,
    ConnectedKube,
    Kube,
    NotFound,
    Object,
)


class InstalledCluster(NamedTuple):
    version: str
    """As Kubernetes tags it."""
    configuration: str | None = None
    """The text of the ConfigMap; None where Lamina is not installed."""
    namespace: str = DEFAULT_NAMESPACE
    """Where to install Lamina."""
    made_by_others: bool = False
    """Whether the namespace exists already, and not for Lamina alone."""


class ConfigurationChange(NamedTuple):
    """What an apply does to the configuration of a cluster."""

    keep: bool
    """The ConfigMap is to be left out of what is applied."""
    warning: str


def installation_record(namespace: str) -> Object:
    """The record, as the chart has it."""
    return {
        "metadata": {"name": CONTROLLER, "labels": labels(CONTROLLER)},
        "roleRef": {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": CONTROLLER},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": namespace}],
    }


async def installed_namespace(kube: Kube) -> str | None:
    """The namespace of the installation; None where there is none, as in a lab. Raises Outside."""
    try:
        binding = await kube.get(CLUSTER_ROLE_BINDINGS, CONTROLLER)
    except NotFound:
        return None
    subjects = [each for each in binding.get("subjects") or () if each.get("name") == CONTROLLER]
    return subjects[0].get("namespace") if subjects and is_ours(binding) else None


async def read_installed(kube: ConnectedKube, namespace: str) -> InstalledCluster:
    """What there is. `namespace` is where to install; empty for where Lamina is, or the default.

    Raises BadInput where Lamina is in another namespace, and Outside.
    """
    found = await installed_namespace(kube)
    if found and namespace and found != namespace:
        raise BadInput(
            f"Lamina is installed in the namespace {found} already, and a cluster has one installation; "
            f"use --namespace {found}, or run `lamina uninstall` first"
        )
    namespace = namespace or found or DEFAULT_NAMESPACE
    version = str((await kube.version())["gitVersion"])
    others = await _is_of_others(kube, namespace)
    try:
        config_map = await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=namespace)
    except NotFound:
        return InstalledCluster(version, None, namespace, others)
    text = str((config_map.get("data") or {}).get(CONFIG_MAP_KEY, ""))
    return InstalledCluster(version, text, namespace, others)


def is_ours(obj: Object) -> bool:
    """Whether an object has the label of Lamina's."""
    return PART_OF.items() <= (obj["metadata"].get("labels") or {}).items()


async def _is_of_others(kube: Kube, namespace: str) -> bool:
    try:
        return not is_ours(await kube.get(NAMESPACES, namespace))
    except NotFound:
        return False


def configuration_change(config: Mapping[str, Any], cluster: InstalledCluster) -> ConfigurationChange:
    """What values with this configuration do to the configuration of a cluster.

    A text that was edited in the cluster stays where the values have no configuration.
    """
    where, text = config_map_name(cluster.namespace), cluster.configuration
    if text is None:
        return ConfigurationChange(False, "")
    try:
        live = load_mapping(text, where)
    except BadInput:
        live = None
    if live == config:
        return ConfigurationChange(False, "")
    if not config:
        return ConfigurationChange(
            True,
            f"{where} is left out and stays as it is, because the values have no config; "
            "to replace it, set config or edit it with kubectl",
        )
    keys = "" if live is None else f" in {', '.join(_different(config, live))}"
    return ConfigurationChange(
        False, f"{where} is replaced, and differs from the values{keys}; `lamina config show` prints what it has"
    )


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [
        str(key)
        for key in dict.fromkeys((*one, *other))
        if (key in one) != (key in other) or one.get(key) != other.get(key)
    ]
