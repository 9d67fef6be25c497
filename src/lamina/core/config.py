"""The configuration of a cluster: what is written in a file or in the ConfigMap `lamina`, and what the code
uses.

    apiVersion: lamina.dev/v1alpha1
    kind: Configuration
    sharing:
      memoryScaling: 1.5
    nodes:
      selector: {gpu: "on"}

Every field has a default, so a configuration only names what differs. A new field is written once, in its group.
`lamina.configuration` reads texts, checks them, and adds the sections of dialects.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from lamina.core.component_names import API_VERSION
from lamina.core.config_fields import (
    Admission,
    Defragmentation,
    Health,
    NodeOverride,
    Nodes,
    Placement,
    Schedulers,
    Sharing,
)
from lamina.core.device_fields import Mig, NativeDevices
from lamina.core.dialect_fields import Compatibility, Dialects
from lamina.core.evictions import Borrowers, GrantlessPods, IdleShares, PreemptionRules
from lamina.core.field_types import Group, Switch, doc, must_be
from lamina.core.gpus import Mode
from lamina.core.mig_rules import MigRule
from lamina.core.object_names import includes
from lamina.core.prices import Pricing
from lamina.core.quantities import MAX_MIB
from lamina.core.sharing import TimeSlice

S = TypeVar("S", bound=Struct)

KIND: Final = "Configuration"
CONFIG_MAP, CONFIG_MAP_KEY = "lamina", "lamina.yaml"
"""Where a cluster keeps its configuration, in Lamina's namespace."""


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

    def overridden(self, node: NodeOverride) -> "NodeSettings":
        """The settings with those of one node."""
        changes = {
            "slots": node.slots,
            "memory_scaling": node.memory_scaling,
            "compute_scaling": node.compute_scaling,
            "unreported_memory_mib": node.unreported_memory_mib,
            "log_level": node.log_level,
            "mig_strategy": node.mig_strategy,
            "time_slice": TimeSlice(node.time_slice) if node.time_slice else None,
            "modes": tuple(Mode(mode) for mode in node.modes) if node.modes else None,
        }
        return msgspec.structs.replace(
            self,
            excluded_uuids=node.excluded_gpus.uuids,
            excluded_indices=node.excluded_gpus.indices,
            **{name: value for name, value in changes.items() if value is not None},
        )

    @property
    def cores_capacity(self) -> int:
        """Percent of compute time that may be granted in total on one GPU."""
        return int(100 * Decimal(str(self.compute_scaling)))


HIGH_PRIORITY_NAMESPACES = "sharing.highPriorityNamespaces"
"""Where it says whose containers may have high priority."""


class Config(Group, frozen=True, kw_only=True, dict=True):
    """The configuration of a cluster."""

    api_version: Annotated[
        Annotated[Literal["lamina.dev/v1alpha1"], must_be(API_VERSION)], doc("Version of this form of the document.")
    ]
    kind: Annotated[Annotated[Literal["Configuration"], must_be(KIND)], doc("Kind of this document.")]
    enabled: Annotated[
        Switch,
        doc(
            "Whether Lamina offers GPUs. If false, agents withdraw their devices and admission is not registered; "
            "running containers keep their shares.",
            reason="An installed Lamina is in use. `lamina reset` sets it to false.",
        ),
    ] = True
    nodes: Annotated[Nodes, doc("Which nodes offer GPUs, and their own settings.")] = Nodes()
    sharing: Annotated[Sharing, doc("How GPUs are divided among containers.")] = Sharing()
    dialects: Annotated[Dialects, doc("How pods request GPUs.")] = Dialects()
    placement: Annotated[Placement, doc("How nodes and GPUs are chosen.")] = Placement()
    defragmentation: Annotated[Defragmentation, doc("Moving pods so that GPUs become idle.")] = Defragmentation()
    idle_shares: Annotated[IdleShares, doc("Pods that hold GPUs and run nothing on them.")] = IdleShares()
    borrowers: Annotated[Borrowers, doc("Pods whose borrowed memory neighbors need.")] = Borrowers()
    grantless_pods: Annotated[GrantlessPods, doc("Pods that have tickets without a grant.")] = GrantlessPods()
    preemption: Annotated[PreemptionRules, doc("Pods that are evicted for more important ones.")] = PreemptionRules()
    pricing: Annotated[Pricing, doc("What GPUs cost, and for whom it is counted.")] = Pricing()
    schedulers: Annotated[Schedulers, doc("The schedulers that use Lamina's extender.")] = Schedulers()
    admission: Annotated[Admission, doc("What admission changes in pods.")] = Admission()
    mig: Annotated[Mig, doc("How MIG devices are offered, and which ones grants may make.")] = Mig()
    native_devices: Annotated[NativeDevices, doc("Devices as NVIDIA's plugin offers them.")] = NativeDevices()
    health: Annotated[Health, doc("Which driver errors make a GPU unhealthy, and for how long.")] = Health()
    compatibility: Annotated[Compatibility, doc("What tools of other systems find on nodes and in metrics.")] = (
        Compatibility()
    )

    def for_node(self, name: str) -> NodeSettings:
        """The settings of the node `name`."""
        return self._single_nodes.get(name, self._all_nodes)

    @cached_property
    def _all_nodes(self) -> NodeSettings:
        sharing, time_slice = self.sharing, self.native_devices.time_slice
        return NodeSettings(
            slots=sharing.slots,
            memory_scaling=sharing.memory_scaling,
            compute_scaling=sharing.compute_scaling,
            unreported_memory_mib=sharing.unreported_memory_mib,
            log_level=sharing.log_level,
            mig_strategy=self.mig.strategy,
            time_slice=TimeSlice(time_slice) if time_slice else None,
            modes=tuple(Mode(mode) for mode in sharing.modes or ()),
        )

    @cached_property
    def _single_nodes(self) -> Mapping[str, NodeSettings]:
        return {node.name: self._all_nodes.overridden(node) for node in self.nodes.overrides}

    @cached_property
    def mig_rules(self) -> tuple[MigRule, ...]:
        """Which MIG instances grants may make, as placement asks."""
        return tuple(rule.as_mig_rule() for rule in self.mig.rules)

    def section(self, kind: type[S]) -> S:
        """The section of the dialect whose sections are of this type."""
        found = self._sections.get(kind)
        return found if isinstance(found, kind) else kind()

    @cached_property
    def _sections(self) -> Mapping[type[Struct], Struct]:
        return {type(section): section for section in self.dialects.sections().values()}

    def allows_high_priority(self, namespace: str) -> bool:
        """Whether containers of the namespace may have high priority."""
        return includes(self.sharing.high_priority_namespaces, namespace)

    def caps_compute(self, namespace: str) -> bool:
        """Whether shares of compute in the namespace are caps, whatever the policy of their dialect lends."""
        return includes(self.sharing.capped_namespaces, namespace)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an agent on a node with these labels offers its GPUs."""
        return self.enabled and all(labels.get(key) == value for key, value in self.nodes.selector.items())
