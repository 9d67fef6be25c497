"""Where the NVIDIA configuration of a node comes from, and which one applies now.

A ClusterPolicy of NVIDIA's operator names the ConfigMap, its default entry, the MIG strategy and the directory of MPS.
Without a ClusterPolicy, or if it names no ConfigMap, Lamina's configuration names one or contains the configurations
itself. The node's label chooses among them. The agent reads only a ConfigMap that is named, because it may read
ConfigMaps of other products only where an administrator allowed it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from lamina.agent.state.nvidia_config import AppliedConfig
from lamina.configuration import Config
from lamina.configuration.nvidia import choose, load
from lamina.configuration.nvidia.choice import EMPTY, LABEL
from lamina.configuration.yaml_documents import shown
from lamina.core.object_names import is_object_name
from lamina.errors import BadInput
from lamina.ports.kube import CLUSTER_POLICIES, CONFIG_MAPS, NODES, Kube, NotFound, Object, Refused


class ConfigSource(NamedTuple):
    """`name` is that of the ConfigMap; empty if the configurations are in Lamina's configuration."""

    namespace: str
    name: str
    default: str
    fallbacks: tuple[str, ...]
    mig_strategy: str
    mps_root: str

    @property
    def where(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}" if self.name else "nvidia.configs"


async def find_source(kube: Kube, config: Config, namespace: str = "") -> ConfigSource:
    """Where the configurations are. `namespace` overrides the ConfigMap's namespace. Raises Outside."""
    return source_of(await _policy(kube), config, namespace)


def source_of(policy: Object | None, config: Config, namespace: str = "") -> ConfigSource:
    """The same for a given ClusterPolicy. Raises BadInput if it names what no ConfigMap can be called."""
    ours = config.native_devices
    namespace = namespace or ours.config_map.namespace
    spec = (policy or {}).get("spec") or {}
    theirs = (spec.get("devicePlugin") or {}).get("config") or {}
    policy_strategy = (spec.get("mig") or {}).get("strategy") or "none"
    mig = (policy_strategy if policy_strategy != "none" else ours.mig_strategy) or ""
    mps = ((spec.get("devicePlugin") or {}).get("mps") or {}).get("root") or ""
    if named := theirs.get("name"):
        if not is_object_name(named):
            raise BadInput(
                f"ClusterPolicy {(policy or {})['metadata']['name']}: devicePlugin.config.name must be the name of a "
                f"ConfigMap, got {shown(named)}"
            )
        # The operator's own plugin falls back to no configuration.
        return ConfigSource(namespace, named, theirs.get("default") or "", (EMPTY,), mig, mps)
    return ConfigSource(namespace, ours.config_map.name, ours.default, ours.fallbacks, mig, mps)


async def read_applied(kube: Kube, node: str, config: Config, source: ConfigSource) -> AppliedConfig:
    """The configuration that applies to the node now. Raises BadInput if it is invalid, and Outside."""
    label = ((await kube.get(NODES, node))["metadata"].get("labels") or {}).get(LABEL, "")
    texts = await _texts(kube, source, config)
    if texts is None:
        if label:
            raise BadInput(
                f"the label {LABEL} names {label}, but neither a ClusterPolicy nor nvidia.config names a ConfigMap"
            )
        return AppliedConfig(policy=source.mig_strategy)
    name = choose(label, texts.keys(), default=source.default, fallbacks=source.fallbacks, where=source.where)
    if name is None:
        return AppliedConfig(policy=source.mig_strategy)
    where = f"{source.where}, {name}"
    config_of_node = load(texts[name], where, mig_strategy=source.mig_strategy, mps_root=source.mps_root)
    return AppliedConfig(name=name, config=config_of_node, policy=source.mig_strategy)


async def _policy(kube: Kube) -> Object | None:
    """The ClusterPolicy; the operator allows only one."""
    try:
        items = (await kube.list(CLUSTER_POLICIES)).items
    except NotFound:
        return None
    return min(items, key=lambda each: str(each["metadata"]["name"]), default=None)


async def _texts(kube: Kube, source: ConfigSource, config: Config) -> Mapping[str, str] | None:
    """The texts of the configurations by name; None if there are none."""
    if not source.name:
        written: Mapping[str, Any] = config.native_devices.configs
        return {name: msgspec.json.encode(each).decode() for name, each in written.items()} or None
    try:
        config_map = await kube.get(CONFIG_MAPS, source.name, namespace=source.namespace)
    except NotFound as error:
        raise BadInput(f"{source.where} with the configurations of NVIDIA's plugin does not exist") from error
    except Refused as error:
        raise BadInput(
            f"the agent may not read {source.where} with the configurations of NVIDIA's plugin; "
            "set agent.nvidiaNamespace to its namespace when installing"
        ) from error
    return dict(config_map.get("data") or {})
