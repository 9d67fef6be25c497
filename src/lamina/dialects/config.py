"""The configuration of a cluster: one YAML text, in a file for the lab and in a ConfigMap on a cluster.

    hami:                      # HAMi's keys and defaults, see `sections.Hami`
      deviceSplitCount: 10
    volcano:                   # the names of Volcano's vGPUs, see `sections.Volcano`
      gpuMemoryFactor: 1
    nvidia:                    # NVIDIA's named configurations, see `sections.Nvidia`
      config: {name: time-slicing-config, default: ""}
      modes: [quota, mig]      # the modes that grants may put idle GPUs in, the preferred one first
    nodeconfig:                # per node, as in HAMi's config.json
      - name: node-1
        devicememoryscaling: 3.0
        operatingmode: mig     # or modes, as above
    nodeSelector: {gpu: "on"}  # agents offer GPUs only on nodes with these labels
    otherResources: [...]      # resources under our prefixes that belong to other systems
    schedulers: [...]          # names in spec.schedulerName under which pods are placed here
    enforcer: auto             # who holds memory: auto, driver or facade
    metrics: [hami, volcano, dcgm, cce]  # whose names the metrics have as well, beside our own
    node: {labels: true}       # what agents write on their nodes for others, see `sections.NodeMarks`
    enabled: true              # false: nodes offer nothing, as `lamina reset` has it
    health: {disable: [63]}    # which errors of the driver count, see `sections.Health`
    lowPriorityPercent: 0      # of the time in which the gate of a lower priority is open all the same

The values of the 4paradigm chart (`devicePlugin.deviceMemoryScaling`, `scheduler.defaultMem`, `resourceName` ...) are
accepted in the chart's own spelling beside these. Unknown keys are refused by name.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from lamina.dialects import chart, geometries, nvidia, strict
from lamina.dialects.sections import (
    FilterDevices,
    Hami,
    Health,
    Labels,
    Name,
    NodeConfig,
    NodeMarks,
    NodePolicy,
    Nvidia,
    Percent,
    ResourceName,
    Switch,
    Volcano,
)
from lamina.errors import BadInput
from lamina.model.gpus import Mode
from lamina.model.grants import ComputePolicy
from lamina.model.mig_rules import MigRule
from lamina.model.sharing import TimeSlice

OTHER_RESOURCES = (
    "nvidia.com/mig-*",
    "nvidia.com/*.shared",
    "nvidia.com/hostdev*",
    "nvidia.com/rdma*",
    "nvidia.com/sriov*",
    "nvidia.com/mlnx*",
    "nvidia.com/*[A-Z]*",
)
"""Other systems' resources under nvidia.com/: MIG, renamed sharing, network; KubeVirt's devices have capitals."""

SCHEDULERS = ("default-scheduler", "hami-scheduler", "4pd-scheduler", "lamina-scheduler", "volcano")
"""Names in `spec.schedulerName` under which we place pods. Volcano's own is taken for pods with our resources alone."""

CONFIG_MAP_NAMESPACE, CONFIG_MAP, CONFIG_MAP_KEY = "lamina-system", "lamina", "lamina.yaml"
"""Where a cluster keeps the text."""

Enforcer = Literal["auto", "driver", "facade"]
"""Who holds memory: the strongest that works, or only one; the facade is always there."""

MetricNames = Annotated[
    tuple[Literal["hami", "volcano", "dcgm", "cce"], ...], Meta(description="a list of hami, volcano, dcgm and cce")
]
"""Whose names the metrics have as well: HAMi's monitor and scheduler, Volcano's scheduler, NVIDIA's DCGM exporter,
CCE's plugin."""

T = TypeVar("T")
SchedulerNames = Annotated[
    tuple[Name, ...], Meta(min_length=1, description="a list of names of schedulers, at least one")
]
Patterns = Annotated[tuple[str, ...], Meta(description="a list of resource names, in which * stands for anything")]


class NodeSettings(Struct, frozen=True, kw_only=True):
    """What holds on one node: the cluster's settings with the node's own put over them."""

    split_count: int
    memory_scaling: float
    core_scaling: float
    pre_configured_memory_mib: int
    log_level: int
    mig_strategy: str
    time_slice: TimeSlice | None
    filter_devices: FilterDevices
    modes: tuple[Mode, ...] = ()
    """The modes that grants may put the node's idle GPUs in, the preferred one first; empty stands for quota and whole.
    MIG holds for the GPUs that can be cut."""

    def offers(self, uuid: str, index: int, *, mig_enabled: bool = False) -> bool:
        """Whether a GPU of the node is to be shared: not filtered, and not cut by MIG, which leaves no GPU to share."""
        return not (mig_enabled or uuid in self.filter_devices.uuid or index in self.filter_devices.index)

    def memory_mib(self, reported_mib: int | None) -> int | None:
        """The memory of a GPU that reports `reported_mib`, or cannot report it (None). None: it cannot be shared."""
        return reported_mib or self.pre_configured_memory_mib or None

    def capacity_mib(self, memory_mib: int) -> int:
        """MiB that may be granted in sum on a GPU with `memory_mib` MiB."""
        return int(memory_mib * Decimal(str(self.memory_scaling)))

    @property
    def cores_capacity(self) -> int:
        """Percent of time that may be granted in sum on one GPU."""
        return int(100 * Decimal(str(self.core_scaling)))


class Config(Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole configuration, in HAMi's terms whatever it was written in."""

    hami: Hami = Hami()
    volcano: Volcano = Volcano()
    nvidia: Nvidia = Nvidia()
    nodeconfig: tuple[NodeConfig, ...] = ()
    node_selector: Labels = {}
    other_resources: Patterns = OTHER_RESOURCES
    schedulers: SchedulerNames = SCHEDULERS
    enforcer: Enforcer = "auto"
    low_priority_percent: Percent = 0
    metrics: MetricNames = ("hami", "volcano", "dcgm", "cce")
    node: NodeMarks = NodeMarks()
    enabled: Switch = True
    """False: nodes offer nothing and admission is not registered; what is placed stays."""
    health: Health = Health()

    @property
    def compute_policy(self) -> ComputePolicy:
        """How shares of compute are held. HAMi's default limits only while several contend, which is a weight."""
        if self.hami.disable_core_limit:
            return ComputePolicy.NONE
        return {
            "default": ComputePolicy.WEIGHT,
            "force": ComputePolicy.CAP,
            "disable": ComputePolicy.NONE,
        }[self.hami.gpu_core_policy]

    def for_node(self, name: str) -> NodeSettings:
        """The settings of the node `name`; a node that the list does not name has the cluster's."""
        own = next((node for node in self.nodeconfig if node.name == name), NodeConfig(name=name))
        hami, time_slice = self.hami, own.timeslice or self.nvidia.time_slice
        return NodeSettings(
            split_count=_or(own.devicesplitcount, hami.device_split_count),
            memory_scaling=_or(own.devicememoryscaling, hami.device_memory_scaling),
            core_scaling=_or(own.devicecorescaling, hami.device_core_scaling),
            pre_configured_memory_mib=_or(own.preconfigureddevicememory, hami.pre_configured_device_memory),
            log_level=int(_or(own.libcudaloglevel, hami.lib_cuda_log_level)),
            mig_strategy=_or(own.migstrategy, hami.mig_strategy),
            time_slice=TimeSlice(time_slice) if time_slice else None,
            filter_devices=own.filterdevices or FilterDevices(),
            modes=_modes(own) or _modes(self.nvidia),
        )

    @property
    def mig_rules(self) -> tuple[MigRule, ...]:
        """Which MIG layouts may be used on which models."""
        return geometries.rules(
            self.hami.known_mig_geometries, self.volcano.known_mig_geometries, self.hami.mig_profile_allowlist
        )

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an agent on a node with these labels is to offer its GPUs."""
        return self.enabled and all(labels.get(key) == value for key, value in self.node_selector.items())


def _modes(written: NodeConfig | Nvidia) -> tuple[Mode, ...]:
    """The modes that a node's entry or the cluster's section names, in one of the two ways."""
    named = written.modes or {"": (), "hami-core": ("quota",), "mig": ("mig",)}[written.operatingmode]
    return tuple(Mode(name) for name in named)


def _or(own: T | None, common: T) -> T:
    return common if own is None else own


DEFAULT = Config()


class _Document(Struct, kw_only=True):
    """The file as it may be written, in both spellings; only used to check keys, types and ranges."""

    hami: Hami | None = None
    volcano: Volcano | None = None
    nvidia: Nvidia | None = None
    nodeconfig: tuple[NodeConfig, ...] = ()
    nodeSelector: Labels | None = None
    otherResources: Patterns = ()
    schedulers: SchedulerNames | None = None
    enforcer: Enforcer = "auto"
    lowPriorityPercent: Percent = 0
    metrics: MetricNames = ()
    node: NodeMarks | None = None
    enabled: Switch = True
    health: Health | None = None
    devicePlugin: chart.DevicePlugin | None = None
    scheduler: chart.Scheduler | None = None
    resourceName: ResourceName | UnsetType = UNSET
    resourceMem: ResourceName | UnsetType = UNSET
    resourceMemPercentage: ResourceName | UnsetType = UNSET
    resourceCores: ResourceName | UnsetType = UNSET
    resourcePriority: ResourceName | UnsetType = UNSET
    schedulerName: Name | UnsetType = UNSET
    schedulePolicy: NodePolicy | UnsetType = msgspec.field(default=UNSET, name=chart.SCHEDULE_POLICY)


def load(text: str, where: str) -> Config:
    """The configuration that `text` (YAML) holds; an empty text is the default. `where` names it in errors.

    Raises BadInput with one sentence: what is wrong, in which key, and what is allowed. Nothing is half-applied.
    """
    document = strict.load_mapping(text, where)
    strict.decode(document, _Document, where)
    config = msgspec.convert(chart.in_hami_keys(document, where), Config)
    _check_offered(config, where)
    _check_names(config, where)
    _check_nodes(config.nodeconfig, where)
    _check_mig(config, where)
    for name, written in config.nvidia.configs.items():
        nvidia.load(msgspec.json.encode(written).decode(), f"{where}: nvidia.configs.{name}")
    if config.hami.disable_core_limit and config.hami.gpu_core_policy == "force":
        raise BadInput(f"{where}: gpuCorePolicy is force and disableCoreLimit is true, which contradict each other")
    return config


def _check_offered(config: Config, where: str) -> None:
    """Switches that stand in every copied HAMi configuration as false, and that nothing here could honour as true."""
    asked = {"hami.enableNumaTopology": config.hami.enable_numa_topology}
    for index, node in enumerate(config.nodeconfig):
        asked[f"nodeconfig[{index}].enablenumatopology"] = node.enablenumatopology
        asked[f"nodeconfig[{index}].enablegetpreferredallocation"] = node.enablegetpreferredallocation
    key = next((key for key, on in asked.items() if on), None)
    if key is not None:
        raise BadInput(f"{where}: {key} is true, which is not offered; allowed is false")


def _check_mig(config: Config, where: str) -> None:
    sections: dict[str, Nvidia | NodeConfig] = {"nvidia": config.nvidia}
    sections.update({f"nodeconfig[{index}]": node for index, node in enumerate(config.nodeconfig)})
    for name, section in sections.items():
        if section.modes is not None and section.operatingmode:
            raise BadInput(f"{where}: {name} has both modes and operatingmode; keep one")
        if section.modes is not None and len(set(section.modes)) < len(section.modes):
            raise BadInput(f"{where}: {name}.modes names {section.modes[0]} twice; name it once")
    for rule in config.mig_rules:
        geometries.check(rule, where)
    geometries.check_amounts((*config.hami.known_mig_geometries, *config.volcano.known_mig_geometries), where)


def _check_names(config: Config, where: str) -> None:
    given = {
        f"{section}.{key}": value
        for section in ("hami", "volcano")
        for key, value in msgspec.to_builtins(getattr(config, section)).items()
        if key.startswith("resource")
    }
    for key, name in given.items():
        twin = next((other for other, value in given.items() if value == name and other != key), None)
        if twin is not None:
            raise BadInput(f"{where}: {key} and {twin} are both {name}; each needs a name of its own")


def _check_nodes(nodes: tuple[NodeConfig, ...], where: str) -> None:
    names = [node.name for node in nodes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{where}: nodeconfig names the node {twice} twice; write one entry")
