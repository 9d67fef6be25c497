"""Where a node's NVIDIA configuration comes from, and what it is at the moment.

A ClusterPolicy of NVIDIA's operator names the ConfigMap, the default in it, the MIG strategy and the folder of MPS.
Without one, or where it names no ConfigMap, our own configuration does, or holds the named configurations itself. The
node's label chooses among them. An agent may read ConfigMaps of others only where somebody said so, so none is asked
for that nobody names.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from lamina.dialects.config import Config
from lamina.dialects.nvidia import Gfd, NvidiaConfig, choose, load
from lamina.dialects.nvidia.choice import EMPTY, LABEL
from lamina.errors import BadInput
from lamina.model.sharing import Sharing
from lamina.ports.kube import CLUSTER_POLICIES, CONFIG_MAPS, NODES, Kube, NotFound, Object, Refused


class Applied(Struct, frozen=True, kw_only=True):
    """The configuration that holds, and its name. None is none of NVIDIA's: the node offers shares."""

    name: str = ""
    config: NvidiaConfig | None = None
    policy: str = ""
    """The strategy for MIG of the ClusterPolicy or of `nvidia.migStrategy`, which needs no configuration."""

    def mig_strategy(self, otherwise: str) -> str:
        """What becomes of MIG devices: NVIDIA's word, or `otherwise` where there is none but "none"."""
        own = self.policy or (self.config.mig_strategy if self.config is not None else "none")
        return otherwise if own == "none" else own

    @property
    def gfd(self) -> Gfd:
        return Gfd() if self.config is None else self.config.gfd

    @property
    def sharing(self) -> Sharing:
        return Sharing() if self.config is None else self.config.sharing


NONE = Applied()


class Source(NamedTuple):
    """`name` is the ConfigMap's, empty where the configurations are written in our own."""

    namespace: str
    name: str
    default: str
    fallbacks: tuple[str, ...]
    mig_strategy: str
    mps_root: str

    @property
    def where(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}" if self.name else "nvidia.configs"


async def source(kube: Kube, config: Config, namespace: str = "") -> Source:
    """Where the configurations are; their ConfigMap is in `namespace`, else where our configuration says. Raises
    Outside."""
    return named(await _policy(kube), config, namespace)


def named(policy: Object | None, config: Config, namespace: str = "") -> Source:
    """The same for this ClusterPolicy."""
    ours = config.nvidia
    namespace = namespace or ours.config.namespace
    spec = (policy or {}).get("spec") or {}
    theirs = (spec.get("devicePlugin") or {}).get("config") or {}
    policys = (spec.get("mig") or {}).get("strategy") or "none"
    mig = (policys if policys != "none" else ours.mig_strategy) or ""
    mps = ((spec.get("devicePlugin") or {}).get("mps") or {}).get("root") or ""
    if theirs.get("name"):
        # The operator's own plugin falls back to no configuration.
        return Source(namespace, theirs["name"], theirs.get("default") or "", (EMPTY,), mig, mps)
    return Source(namespace, ours.config.name, ours.config.default, ours.fallbacks, mig, mps)


async def applied(kube: Kube, node: str, config: Config, found: Source) -> Applied:
    """What holds on the node now. Raises BadInput with the reason why that cannot be, and Outside."""
    label = ((await kube.get(NODES, node))["metadata"].get("labels") or {}).get(LABEL, "")
    texts = await _texts(kube, found, config)
    if texts is None:
        if label:
            raise BadInput(f"the label {LABEL} names {label}, but no ConfigMap with configurations is named anywhere")
        return Applied(policy=found.mig_strategy)
    name = choose(label, texts.keys(), default=found.default, fallbacks=found.fallbacks, where=found.where)
    if name is None:
        return Applied(policy=found.mig_strategy)
    where = f"{found.where}, {name}"
    read = load(texts[name], where, mig_strategy=found.mig_strategy, mps_root=found.mps_root)
    return Applied(name=name, config=read, policy=found.mig_strategy)


async def _policy(kube: Kube) -> Object | None:
    """The ClusterPolicy, of which an operator allows one."""
    try:
        items = (await kube.list(CLUSTER_POLICIES)).items
    except NotFound:
        return None
    return min(items, key=lambda each: str(each["metadata"]["name"]), default=None)


async def _texts(kube: Kube, found: Source, config: Config) -> Mapping[str, str] | None:
    """The texts of the named configurations, None where none are named anywhere."""
    if not found.name:
        written: Mapping[str, Any] = config.nvidia.configs
        return {name: msgspec.json.encode(each).decode() for name, each in written.items()} or None
    try:
        held = await kube.get(CONFIG_MAPS, found.name, namespace=found.namespace)
    except NotFound as error:
        raise BadInput(f"{found.where}, which holds the configurations of NVIDIA's plugin, is not there") from error
    except Refused as error:
        where = f"{found.where}, which holds the configurations of NVIDIA's plugin"
        mend = "set agent.nvidiaNamespace to its namespace when installing"
        raise BadInput(f"the agent may not read {where}; {mend}") from error
    return dict(held.get("data") or {})
