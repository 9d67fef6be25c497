"""A document without apiVersion, in which the keys of several systems may stand side by side.

hami:                      # HAMi's device configuration, see `hami.Hami`
  deviceSplitCount: 10
nodeconfig:                # HAMi's settings of single nodes
  - {name: node-1, devicememoryscaling: 3.0}
volcano:                   # Volcano's device configuration, see `volcano.Volcano`
  gpuMemoryFactor: 1
devicePlugin: {...}        # values of 4paradigm's chart, see `chart_4paradigm`
nvidia: {...}              # keys that Lamina had before v1alpha1, from here on
nodeSelector: {gpu: "on"}
otherResources: [...]
schedulers: [...]
enforcer: auto
metrics: [hami, volcano, dcgm, cce]
node: {labels: true}
enabled: true
health: {disable: [63]}
lowPriorityPercent: 5
highPriorityNamespaces: [...]
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from lamina.configuration import strict
from lamina.configuration.checks import check_modes, check_names, check_native_configs, check_nodes
from lamina.configuration.form import form
from lamina.configuration.importers import chart_4paradigm, hami, volcano
from lamina.configuration.importers.hami import Hami, NodeConfig, OperatingMode
from lamina.configuration.importers.volcano import Volcano
from lamina.core.api_group import API_VERSION
from lamina.core.config import KIND, Config
from lamina.core.config_fields import (
    Admission,
    Nodes,
    Placement,
    Sharing,
)
from lamina.core.config_fields import Health as WrittenHealth
from lamina.core.device_fields import ConfigMapReference, Mig, NativeDevices
from lamina.core.dialect_fields import OTHER_RESOURCES
from lamina.core.field_types import (
    Fallback,
    Labels,
    Limit,
    MemoryEnforcer,
    MigStrategy,
    Modes,
    Name,
    Namespaces,
    NodePolicy,
    Percent,
    ReplicaMemory,
    ResourceName,
    ResourcePatterns,
    SchedulerNames,
    Seconds,
    Switch,
    TimeSlice,
    Xids,
    must_be,
)
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput

AnnotationSystems = Annotated[tuple[Literal["hami", "volcano"], ...], must_be("a list of hami and volcano")]
ResourceSystems = Annotated[tuple[Literal["hami", "volcano", "cce"], ...], must_be("a list of hami, volcano and cce")]
MetricSystems = Annotated[
    tuple[Literal["hami", "volcano", "dcgm", "cce"], ...], must_be("a list of hami, volcano, dcgm and cce")
]


class NodeSection(Struct, frozen=True, kw_only=True):
    """`node`: what agents write on nodes for tools of other systems."""

    labels: Switch = True
    """Is `compatibility.labels`."""
    registers: AnnotationSystems | UnsetType = UNSET
    """Is `compatibility.annotations`, with the same default."""
    amounts: ResourceSystems | UnsetType = UNSET
    """Is `compatibility.resources`, with the same default."""


class HealthSection(Struct, frozen=True, kw_only=True, rename="camel"):
    """`health`: which driver errors make a GPU unhealthy."""

    disable: Annotated[Literal["all", "xids"] | Xids, must_be("all, xids or a list of XID numbers")] = ()
    """Is `health.ignoredXids`, as DP_DISABLE_HEALTHCHECKS of NVIDIA's plugin."""
    enable: Xids = ()
    """Is `health.countedXids`, as DP_ENABLE_HEALTHCHECKS of NVIDIA's plugin."""
    only: Xids = ()
    """Is `health.onlyXids`, as CCE's health_check_xids."""
    retired_pages: Limit | None = 60
    """Is `health.maxRetiredPages`."""
    sram_errors: Limit | None = 4
    """Is `health.maxSramErrors`."""
    quiet_seconds: Seconds = 60.0
    """Is `health.recoverySeconds`."""


class NamedConfigs(Struct, frozen=True, kw_only=True, rename="camel"):
    """`nvidia.config`: as devicePlugin.config of a ClusterPolicy."""

    name: Name = ""
    """Is `nativeDevices.configMap.name`."""
    namespace: Name = "nvidia-gpu-operator"
    """Is `nativeDevices.configMap.namespace`."""
    default: Name = ""
    """Is `nativeDevices.default`."""


class Nvidia(Struct, frozen=True, kw_only=True, rename="camel"):
    """`nvidia`: native devices, and the modes of the cluster."""

    config: NamedConfigs = NamedConfigs()
    """See below."""
    configs: Annotated[dict[str, Any], must_be("named configurations, each a mapping with version: v1")] = {}
    """Is `nativeDevices.configs`."""
    fallbacks: tuple[Fallback, ...] = ("empty",)
    """Is `nativeDevices.fallbacks`."""
    mig_strategy: MigStrategy | None = None
    """Is `nativeDevices.migStrategy`."""
    replica_memory: ReplicaMemory = "shared"
    """Is `nativeDevices.replicaMemory`."""
    operatingmode: OperatingMode = ""
    """In `sharing.modes`: hami-core is quota, mps is mps, mig is mig."""
    modes: Modes | None = None
    """Is `sharing.modes`."""
    time_slice: TimeSlice | None = None
    """Is `nativeDevices.timeSlice`."""


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """The document in HAMi's keys, without the values of the chart."""

    hami: Hami = Hami()
    volcano: Volcano = Volcano()
    nvidia: Nvidia = Nvidia()
    nodeconfig: tuple[NodeConfig, ...] = ()
    """Settings of single nodes, see below."""
    node_selector: Labels = {}
    """Is `nodes.selector`."""
    other_resources: ResourcePatterns = OTHER_RESOURCES
    """Is `dialects.otherResources`."""
    schedulers: SchedulerNames | UnsetType = UNSET
    """Is `schedulers.served`, with the same default."""
    enforcer: MemoryEnforcer = "auto"
    """Is `sharing.memoryEnforcer`."""
    low_priority_percent: Percent | UnsetType = UNSET
    """Is `sharing.lowPriorityPercent`, with the same default."""
    high_priority_namespaces: Namespaces = ()
    """Is `sharing.highPriorityNamespaces`."""
    metrics: MetricSystems | UnsetType = UNSET
    """Is `compatibility.metrics`, with the same default."""
    node: NodeSection = NodeSection()
    enabled: Switch = True
    """Is `enabled`."""
    health: HealthSection = HealthSection()


class DocumentWithChart(Document, frozen=True, kw_only=True, rename="camel"):
    """The document as it may be written; only used to check keys, types and ranges."""

    device_plugin: chart_4paradigm.DevicePlugin | None = None
    scheduler: chart_4paradigm.SchedulerSection | None = None
    resource_name: ResourceName | UnsetType = UNSET
    resource_mem: ResourceName | UnsetType = UNSET
    resource_mem_percentage: ResourceName | UnsetType = UNSET
    resource_cores: ResourceName | UnsetType = UNSET
    resource_priority: ResourceName | UnsetType = UNSET
    scheduler_name: Name | UnsetType = UNSET
    schedule_policy: NodePolicy | UnsetType = msgspec.field(default=UNSET, name=SCHEDULE_POLICY)


def read(document: Mapping[str, Any], where: str) -> Config:
    """The Configuration that a document stands for. Raises BadInput; nothing is applied in part."""
    present = strict.without_empty_keys(document, DocumentWithChart)
    strict.decode(present, DocumentWithChart, where)
    written = strict.decode(chart_4paradigm.in_hami_keys(present, where), Document, where)
    _check(written, where)
    return _configuration(written)


def _check(written: Document, where: str) -> None:
    hami.check(written.hami, written.nodeconfig, where)
    volcano.check(written.volcano, where)
    names = {
        f"{section}.{key}": value
        for section, keys in (("hami", written.hami), ("volcano", written.volcano))
        for key, value in msgspec.to_builtins(keys).items()
        if key.startswith("resource")
    }
    check_names(names, where)
    check_nodes([node.name for node in written.nodeconfig], "nodeconfig", where)
    sections: dict[str, Nvidia | NodeConfig] = {"nvidia": written.nvidia}
    sections |= {f"nodeconfig[{index}]": node for index, node in enumerate(written.nodeconfig)}
    for path, section in sections.items():
        if section.modes is not None and section.operatingmode:
            raise BadInput(f"{where}: {path} must not have both modes and operatingmode; keep one of them")
        check_modes(section.modes, f"{path}.modes", where)
    check_native_configs(written.nvidia.configs, "nvidia.configs", where)


def _configuration(written: Document) -> Config:
    keys, nvidia, node, types = written.hami, written.nvidia, written.node, form()
    sections: dict[str, Any] = {"hami": hami.dialect(keys), "volcano": volcano.dialect(written.volcano)}
    return types.configuration(
        api_version=API_VERSION,
        kind=KIND,
        enabled=written.enabled,
        nodes=Nodes(
            selector=written.node_selector, overrides=tuple(hami.node_override(node) for node in written.nodeconfig)
        ),
        sharing=Sharing(
            slots=keys.device_split_count,
            memory_scaling=keys.device_memory_scaling,
            compute_scaling=keys.device_core_scaling,
            unreported_memory_mib=keys.pre_configured_device_memory,
            modes=hami.modes(nvidia.operatingmode, nvidia.modes),
            compute_policy=hami.compute_policy(keys),
            high_priority_namespaces=written.high_priority_namespaces,
            memory_enforcer=written.enforcer,
            log_level=hami.log_level(keys.lib_cuda_log_level),
            **_given(low_priority_percent=written.low_priority_percent),
        ),
        dialects=types.dialects(other_resources=written.other_resources, **sections),
        placement=Placement(node_policy=keys.node_scheduler_policy, gpu_policy=keys.gpu_scheduler_policy),
        schedulers=types.schedulers(assigned=keys.scheduler_name, **_given(served=written.schedulers)),
        admission=Admission(hide_gpus=keys.overwrite_env, runtime_class_name=keys.runtime_class_name),
        mig=Mig(
            strategy=keys.mig_strategy,
            rules=(*hami.layout_rules(keys), *volcano.layout_rules(written.volcano), *hami.profile_rules(keys)),
        ),
        native_devices=_native_devices(nvidia),
        health=_health(written.health),
        compatibility=types.compatibility(
            labels=node.labels,
            **_given(annotations=node.registers, resources=node.amounts, metrics=written.metrics),
        ),
    )


def _given(**values: Any) -> dict[str, Any]:
    """The values that the document has; the others keep the defaults of the Configuration."""
    return {name: value for name, value in values.items() if value is not UNSET}


def _native_devices(nvidia: Nvidia) -> NativeDevices:
    return NativeDevices(
        config_map=ConfigMapReference(name=nvidia.config.name, namespace=nvidia.config.namespace),
        default=nvidia.config.default,
        fallbacks=nvidia.fallbacks,
        configs=nvidia.configs,
        mig_strategy=nvidia.mig_strategy,
        replica_memory=nvidia.replica_memory,
        time_slice=nvidia.time_slice,
    )


def _health(health: HealthSection) -> WrittenHealth:
    return WrittenHealth(
        ignored_xids="all" if isinstance(health.disable, str) else health.disable,
        counted_xids=health.enable,
        only_xids=health.only,
        max_retired_pages=health.retired_pages,
        max_sram_errors=health.sram_errors,
        recovery_seconds=health.quiet_seconds,
    )
