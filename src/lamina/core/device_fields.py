"""The groups `mig` and `nativeDevices` of a Configuration."""

from typing import Annotated, Any

from msgspec import Meta, field

from lamina.core.field_types import (
    Fallback,
    Group,
    MigProfile,
    MigStrategy,
    Models,
    Name,
    ReplicaMemory,
    TimeSlice,
    doc,
    must_be,
)
from lamina.core.mig_rules import MigRule


class Instances(Group, frozen=True, kw_only=True):
    """A number of MIG instances of one profile."""

    profile: Annotated[MigProfile, doc("MIG profile, such as 1g.5gb.")]
    count: Annotated[
        Annotated[int, Meta(ge=1, le=8), must_be("an integer from 1 to 8")],
        doc("Number of instances of the profile.", unit="instances"),
    ]


Layouts = Annotated[
    tuple[tuple[Instances, ...], ...], Meta(min_length=1), must_be("a list of layouts with at least one entry")
]
Profiles = Annotated[tuple[MigProfile, ...], Meta(min_length=1), must_be("a list of MIG profiles, at least one")]


class AllowedInstances(Group, frozen=True, kw_only=True):
    """The MIG layouts that GPUs of some models may have: either `layouts` or `profiles` is set."""

    models: Annotated[Models, doc("Model names that the rule is for, or parts of them, such as A100-SXM4-40GB or A30.")]
    layouts: Annotated[
        Layouts | None,
        doc(
            "Allowed layouts, each a list of profiles with counts. The instances on a GPU are always a part of one.",
            reason="Either this or `profiles` is set.",
        ),
    ] = None
    profiles: Annotated[
        Profiles | None,
        doc("Allowed profiles, in any layout that the GPU supports.", reason="Either this or `layouts` is set."),
    ] = None

    def as_mig_rule(self) -> MigRule:
        """The rule as placement asks it."""
        if self.profiles is not None:
            return MigRule(models=self.models, profiles=self.profiles)
        layouts = []
        for layout in self.layouts or ():
            counts: dict[str, int] = {}
            for instances in layout:
                counts[instances.profile] = counts.get(instances.profile, 0) + instances.count
            layouts.append(tuple(counts.items()))
        profiles = tuple(dict.fromkeys(profile for layout in layouts for profile, _ in layout))
        return MigRule(models=self.models, profiles=profiles, layouts=tuple(layouts))


class Mig(Group, frozen=True, kw_only=True):
    """How MIG devices are offered, and which ones grants may make."""

    strategy: Annotated[
        MigStrategy,
        doc(
            "How existing MIG devices are offered: `mixed` as nvidia.com/mig-<profile>, `single` as nvidia.com/gpu if "
            "all GPUs have instances of one profile, `none` not at all.",
            reason="The default of NVIDIA's device plugin. MIG devices that grants make do not depend on it.",
        ),
    ] = "none"
    default_configuration: Annotated[
        Name,
        doc(
            "Configuration that agents write into the label nvidia.com/mig.config of nodes without that label whose "
            "GPUs can be partitioned and are not in MIG mode, such as all-disabled, NVIDIA's operator's default. Empty "
            "for none. Where `sharing.modes` has `mig`, grants decide, and no label is written.",
            reason="A GPU that the label covers is kept as the label says, also if a person changes it by nvidia-smi.",
        ),
    ] = ""
    rules: Annotated[
        tuple[AllowedInstances, ...],
        doc(
            "Layouts that grants may make on GPUs of some models. The first rule for a model counts; models without a "
            "rule may have every layout.",
            reason="Placement chooses among all layouts that the GPU supports, which strands least.",
        ),
    ] = ()


class ConfigMapReference(Group, frozen=True, kw_only=True):
    """A ConfigMap."""

    name: Annotated[
        Name,
        doc(
            "Name of a ConfigMap whose keys are named configurations of NVIDIA's device plugin; empty for none.",
            reason="Clusters that never used NVIDIA's device plugin have none.",
        ),
    ] = ""
    namespace: Annotated[
        Name, doc("Namespace of the ConfigMap.", reason="Where NVIDIA's operator keeps its ConfigMaps.")
    ] = "nvidia-gpu-operator"


class NativeDevices(Group, frozen=True, kw_only=True):
    """Native devices, which kubelet allocates as with NVIDIA's device plugin: replicas by time-slicing or MPS.

    A node has the named configuration that its label nvidia.com/device-plugin.config or `default` selects.
    """

    config_map: Annotated[
        ConfigMapReference,
        doc("ConfigMap with named configurations of NVIDIA's device plugin. One in a ClusterPolicy takes precedence."),
    ] = ConfigMapReference()
    default: Annotated[
        Name,
        doc(
            "Named configuration of nodes without the label nvidia.com/device-plugin.config; empty uses `fallbacks`.",
            reason="Nodes share GPUs by grants unless they are chosen for native devices.",
        ),
    ] = ""
    fallbacks: Annotated[
        tuple[Fallback, ...],
        doc(
            "What nodes without label and default use, the first that there is: `named` the configuration called "
            "default, `single` the only one, `empty` none. A ConfigMap in a ClusterPolicy has no fallbacks: there, "
            "such nodes use none.",
            reason="NVIDIA's chart applies its configuration to all nodes, NVIDIA's operator only where a label or its "
            "default says so. With several configurations and none called default, nodes share GPUs by grants.",
        ),
    ] = ("named", "single", "empty")
    configs: Annotated[
        Annotated[dict[str, Any], must_be("named configurations, each a mapping with version: v1")],
        doc(
            "Named configurations that are written here instead of in a ConfigMap, each as a file of NVIDIA's device "
            "plugin with `version: v1`.",
            reason="Nodes share GPUs by grants unless they are chosen for native devices.",
        ),
    ] = field(default_factory=dict)
    mig_strategy: Annotated[
        MigStrategy | None,
        doc(
            "MIG strategy on nodes with native devices: overrides `flags.migStrategy` of the named configuration, and "
            "`mig.strategy` unless it is none.",
            reason="Not set leaves the choice to the named configuration.",
        ),
    ] = None
    replica_memory: Annotated[
        ReplicaMemory,
        doc(
            "What a container with a replica may use: `shared` all memory of the GPU, `equal` its memory divided by "
            "the number of replicas.",
            reason="What NVIDIA's device plugin does.",
        ),
    ] = "shared"
    time_slice: Annotated[
        TimeSlice | None,
        doc(
            "Longest time slice on GPUs with time-slicing: `default`, `short`, `medium` or `long`, as in nvidia-smi.",
            reason="Not set leaves it to the driver.",
        ),
    ] = None
