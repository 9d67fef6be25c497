"""The configuration of a cluster as the code uses it, whatever it was written in."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal, TypeVar

from msgspec import Struct

from lamina.core.borrowers import BorrowerPolicy
from lamina.core.gpus import Mode
from lamina.core.grantless import GrantlessPolicy
from lamina.core.grants import ComputePolicy
from lamina.core.idle import IdlePolicy
from lamina.core.mig_rules import MigRule
from lamina.core.namespaces import includes
from lamina.core.prices import Pricing
from lamina.core.quantities import MAX_MIB
from lamina.core.sharing import TimeSlice

S = TypeVar("S", bound=Struct)

CONFIG_MAP_NAMESPACE, CONFIG_MAP, CONFIG_MAP_KEY = "lamina-system", "lamina", "lamina.yaml"
"""Where a cluster keeps its configuration."""

MemoryEnforcer = Literal["auto", "driver", "facade"]
"""What enforces memory limits: the strongest that works, or only one of them; the facade is always there."""
FailurePolicy = Literal["Ignore", "Fail"]


class ByClaim(StrEnum):
    """Which pods that request shares by resources are served by claims that Lamina generates."""

    NEVER = "never"
    ASKED = "asked"
    ALWAYS = "always"


class NodeSettings(Struct, frozen=True, kw_only=True):
    """The settings of one node: those of the cluster with the node's overrides."""

    slots: int
    memory_scaling: float
    compute_scaling: float
    unreported_memory_mib: int
    log_level: int
    mig_strategy: str
    time_slice: TimeSlice | None
    modes: tuple[Mode, ...]
    """The modes that grants may put the node's idle GPUs in, the preferred one first; empty means quota and whole. MIG
    applies to GPUs that can be partitioned."""
    excluded_uuids: tuple[str, ...] = ()
    excluded_indices: tuple[int, ...] = ()

    def offers(self, uuid: str, index: int, *, mig_enabled: bool = False) -> bool:
        """Whether a GPU of the node is shared: not excluded, and not in MIG mode, which leaves no GPU to share."""
        return not (mig_enabled or uuid in self.excluded_uuids or index in self.excluded_indices)

    def memory_mib(self, reported_mib: int | None) -> int | None:
        """The memory of a GPU that reports `reported_mib`, or cannot report it (None). None: it cannot be shared."""
        return reported_mib or self.unreported_memory_mib or None

    def capacity_mib(self, memory_mib: int) -> int:
        """Memory in MiB that may be granted in total on a GPU with `memory_mib` MiB."""
        return min(int(memory_mib * Decimal(str(self.memory_scaling))), MAX_MIB)

    def grant_modes(self, *, can_partition: bool) -> tuple[Mode, ...]:
        """The modes that grants may put a GPU in, as in `Gpu.modes`. One that cannot be partitioned is in quota."""
        modes = tuple(mode for mode in self.modes if mode is not Mode.MIG or can_partition)
        return modes or tuple(Mode.QUOTA for _ in self.modes)

    @property
    def cores_capacity(self) -> int:
        """Percent of compute time that may be granted in total on one GPU."""
        return int(100 * Decimal(str(self.compute_scaling)))


class NativeDeviceSettings(Struct, frozen=True, kw_only=True):
    """Where the named configurations of NVIDIA's device plugin are, and which one a node has."""

    config_map: str
    namespace: str
    default: str
    fallbacks: tuple[str, ...]
    configs: Mapping[str, Any]
    mig_strategy: str | None
    equal_memory: bool
    """Whether a replica is limited to an equal part of the GPU's memory."""


class HealthRules(Struct, frozen=True, kw_only=True):
    """Which driver errors (XIDs) make a GPU unhealthy, and for how long."""

    ignores_all: bool
    ignored_xids: tuple[int, ...]
    counted_xids: tuple[int, ...]
    """These count even if they are ignored."""
    only_xids: tuple[int, ...]
    """If there are any, no others count."""
    max_retired_pages: int | None
    max_sram_errors: int | None
    recovery_seconds: float


class CompatibilitySettings(Struct, frozen=True, kw_only=True):
    """What tools of other systems find on nodes and in metrics."""

    labels: bool
    annotations: tuple[str, ...]
    resources: tuple[str, ...]
    metrics: tuple[str, ...]


class Config(Struct, frozen=True, kw_only=True):
    """The configuration of a cluster."""

    enabled: bool
    """False: nodes offer nothing and admission is not registered; running containers keep their shares."""
    node_selector: Mapping[str, str]
    all_nodes: NodeSettings
    single_nodes: Mapping[str, NodeSettings]
    dialects: Mapping[type[Struct], Struct]
    """The section of each dialect, by its type."""
    other_resources: tuple[str, ...]
    node_policy: str
    gpu_policy: str
    compute_policy: ComputePolicy
    memory_enforcer: MemoryEnforcer
    low_priority_percent: int
    high_priority_namespaces: tuple[str, ...]
    moves_per_hour: int
    """Most pods that defragmentation evicts in an hour."""
    idle: IdlePolicy
    borrowers: BorrowerPolicy
    grantless_pods: GrantlessPolicy
    pricing: Pricing
    schedulers: tuple[str, ...]
    assigned_scheduler: str
    runtime_class_name: str
    hide_gpus: bool
    hiding_failure_policy: FailurePolicy
    by_claim: ByClaim
    mig_rules: tuple[MigRule, ...]
    native_devices: NativeDeviceSettings
    health: HealthRules
    compatibility: CompatibilitySettings

    def for_node(self, name: str) -> NodeSettings:
        """The settings of the node `name`."""
        return self.single_nodes.get(name, self.all_nodes)

    def section(self, kind: type[S]) -> S:
        """The section of the dialect whose sections are of this type."""
        found = self.dialects.get(kind)
        return found if isinstance(found, kind) else kind()

    def allows_high_priority(self, namespace: str) -> bool:
        """Whether containers of the namespace may have high priority."""
        return includes(self.high_priority_namespaces, namespace)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an agent on a node with these labels offers its GPUs."""
        return self.enabled and all(labels.get(key) == value for key, value in self.node_selector.items())
