"""HAMi's keys: the section `hami`, which is HAMi's device configuration, and the list `nodeconfig` of its config.json.

Keys are spelled as HAMi spells them, so that an existing configuration can be copied. Every key takes effect or is
refused. Memory is in MiB, cores are percent of one GPU's time.

HAMi's MIG geometries are lists of profiles. A geometry is the most that a GPU has: only instances that pods request are
made. `core` and `memory` of a profile are given by the card, whatever is written; an impossible amount is refused.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from lamina.core.config_fields import ExcludedGpus, NodeOverride
from lamina.core.device_fields import AllowedInstances
from lamina.core.device_fields import Instances as WrittenInstances
from lamina.core.field_types import (
    ComputePolicy,
    Count,
    GpuPolicy,
    LogLevel,
    Mebibytes,
    MemoryUnit,
    MigProfile,
    MigStrategy,
    Models,
    Modes,
    Name,
    NodePolicy,
    Percent,
    ResourceName,
    Scaling,
    Slots,
    Switch,
    must_be,
)
from lamina.core.policies import PACKING
from lamina.dialects.hami.section import HamiResources, HamiSection, RequestDefaults
from lamina.errors import BadInput

LogLevelOrText = Annotated[
    LogLevel | Literal["0", "1", "2", "3", "4"],
    must_be("0 (errors), 1 (warnings), 2 or 3 (information) or 4 (debug)"),
]
CorePolicy = Annotated[Literal["default", "force", "disable"], must_be("default, force or disable")]
OperatingMode = Annotated[Literal["", "hami-core", "mps", "mig"], must_be("hami-core, mps or mig")]

_PROFILE_NAMES = {"7g.79gb": "7g.80gb"}
"""What HAMi and Volcano call the profile that is all of a card with 80 GB."""


class InstanceCount(Struct, frozen=True, kw_only=True):
    """A number of instances of one profile."""

    name: MigProfile
    count: Annotated[int, Meta(ge=1, le=8), must_be("an integer from 1 to 8")]
    memory: Annotated[int, Meta(ge=1), must_be("an integer from 1 (MiB)")] | None = None
    core: Annotated[int, Meta(ge=1, le=100), must_be("an integer from 1 to 100")] | None = None


Layout = tuple[InstanceCount, ...]


class HamiGeometry(Struct, frozen=True, kw_only=True, rename="camel"):
    """The layouts that models may have."""

    models: Models
    allowed_geometries: Annotated[
        tuple[Layout, ...], Meta(min_length=1), must_be("a list of lists of profiles with at least one entry")
    ]


class AllowedProfiles(Struct, frozen=True, kw_only=True):
    """The profiles that models may have, in any layout."""

    models: Models
    profiles: Annotated[
        tuple[MigProfile, ...], Meta(min_length=1), must_be("a list of profiles with at least one entry")
    ]


class Hami(Struct, frozen=True, kw_only=True, rename="camel"):
    """HAMi's settings of NVIDIA's devices, with HAMi's defaults."""

    resource_count_name: ResourceName = "nvidia.com/gpu"
    """Is `dialects.hami.resources.count`."""
    resource_memory_name: ResourceName = "nvidia.com/gpumem"
    """Is `dialects.hami.resources.memory`."""
    resource_memory_percentage_name: ResourceName = "nvidia.com/gpumem-percentage"
    """Is `dialects.hami.resources.memoryPercentage`."""
    resource_core_name: ResourceName = "nvidia.com/gpucores"
    """Is `dialects.hami.resources.cores`."""
    resource_priority_name: ResourceName = "nvidia.com/priority"
    """Is `dialects.hami.resources.priority`."""
    overwrite_env: Switch = False
    """Is `admission.hideGpus`."""
    default_memory: Mebibytes = 0
    """Is `dialects.hami.defaults.memoryMiB`."""
    default_cores: Percent = 0
    """Is `dialects.hami.defaults.cores`."""
    default_gpu_num: Count = field(default=1, name="defaultGPUNum")
    """Is `dialects.hami.defaults.count`."""
    memory_factor: MemoryUnit = 1
    """Is `dialects.hami.memoryUnitMiB`."""
    device_split_count: Slots = 10
    """Is `sharing.slots`."""
    device_memory_scaling: Scaling = 1
    """Is `sharing.memoryScaling`."""
    device_core_scaling: Scaling = 1
    """Is `sharing.computeScaling`."""
    pre_configured_device_memory: Mebibytes = 0
    """Is `sharing.unreportedMemoryMiB`."""
    enable_numa_topology: Switch = False
    """Not supported; only false is accepted. Use the annotation nvidia.com/numa-bind."""
    mig_strategy: MigStrategy = "none"
    """Is `mig.strategy`."""
    lib_cuda_log_level: LogLevelOrText = 1
    """Is `sharing.logLevel`."""
    gpu_core_policy: CorePolicy = "default"
    """Is `sharing.computePolicy`: default is weight, force is cap, disable is none."""
    disable_core_limit: Switch = False
    """If true, `sharing.computePolicy` is none."""
    runtime_class_name: Name = ""
    """Is `admission.runtimeClassName`."""
    scheduler_name: Name = "hami-scheduler"
    """Is `schedulers.assigned`."""
    node_scheduler_policy: NodePolicy = PACKING
    """Is `placement.nodePolicy`."""
    gpu_scheduler_policy: GpuPolicy = PACKING
    """Is `placement.gpuPolicy`."""
    known_mig_geometries: Annotated[
        tuple[HamiGeometry, ...], must_be("a list of entries with models and allowedGeometries")
    ] = ()
    """Rules with `layouts` in `mig.rules`."""
    mig_profile_allowlist: Annotated[
        tuple[AllowedProfiles, ...], must_be("a list of entries with models and profiles")
    ] = ()
    """Rules with `profiles` in `mig.rules`."""


class FilterDevices(Struct, frozen=True, kw_only=True):
    """GPUs of one node that are not offered, by UUID or by index."""

    uuid: Annotated[tuple[str, ...], must_be("a list of GPU UUIDs")] = ()
    """Is `nodes.overrides[].excludedGpus.uuids`."""
    index: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], must_be("a list of GPU indices from 0")] = ()
    """Is `nodes.overrides[].excludedGpus.indices`."""


class NodeConfig(Struct, frozen=True, kw_only=True):
    """Settings of one node, spelled as in HAMi's config.json. None leaves the cluster's setting."""

    name: Annotated[str, Meta(min_length=1), must_be("the name of a node")]
    """Is `nodes.overrides[].name`."""
    operatingmode: OperatingMode = ""
    """In `nodes.overrides[].modes`: hami-core is quota, mps is mps, mig is mig."""
    devicesplitcount: Slots | None = None
    """Is `nodes.overrides[].slots`."""
    devicememoryscaling: Scaling | None = None
    """Is `nodes.overrides[].memoryScaling`."""
    devicecorescaling: Scaling | None = None
    """Is `nodes.overrides[].computeScaling`."""
    preconfigureddevicememory: Mebibytes | None = None
    """Is `nodes.overrides[].unreportedMemoryMiB`."""
    enablenumatopology: Switch = False
    """Not supported; only false is accepted."""
    libcudaloglevel: LogLevelOrText | None = None
    """Is `nodes.overrides[].logLevel`."""
    migstrategy: MigStrategy | None = None
    """Is `nodes.overrides[].migStrategy`."""
    filterdevices: FilterDevices | None = None
    """Is `nodes.overrides[].excludedGpus`."""
    enablegetpreferredallocation: Switch = False
    """Not supported; only false is accepted."""


def check(hami: Hami, nodes: Sequence[NodeConfig], where: str) -> None:
    """Refuse switches that HAMi has and that are not supported here, and settings that contradict each other."""
    switches = {"hami.enableNumaTopology": hami.enable_numa_topology}
    for index, node in enumerate(nodes):
        switches[f"nodeconfig[{index}].enablenumatopology"] = node.enablenumatopology
        switches[f"nodeconfig[{index}].enablegetpreferredallocation"] = node.enablegetpreferredallocation
    for path, on in switches.items():
        if on:
            raise BadInput(f"{where}: {path} must be false (not supported), got true")
    if hami.disable_core_limit and hami.gpu_core_policy == "force":
        raise BadInput(f"{where}: hami.gpuCorePolicy must not be force if hami.disableCoreLimit is true; keep one")
    check_amounts(((geometry.models, geometry.allowed_geometries) for geometry in hami.known_mig_geometries), where)


def check_amounts(geometries: Iterable[tuple[Sequence[str], Iterable[Layout]]], where: str) -> None:
    """Refuse a profile with more memory than its name says."""
    for models, layouts in geometries:
        for instances in (instances for layout in layouts for instances in layout):
            most = int(re.findall(r"\d+", instances.name)[1]) * 1024
            if instances.memory is not None and instances.memory > most:
                raise BadInput(
                    f"{where}: {', '.join(models)}: memory of {instances.name} must be at most {most}, "
                    f"got {instances.memory}"
                )


def dialect(hami: Hami) -> HamiSection:
    """The resource names and defaults for requests."""
    return HamiSection(
        resources=HamiResources(
            count=hami.resource_count_name,
            memory=hami.resource_memory_name,
            memory_percentage=hami.resource_memory_percentage_name,
            cores=hami.resource_core_name,
            priority=hami.resource_priority_name,
        ),
        memory_unit_mib=hami.memory_factor,
        defaults=RequestDefaults(count=hami.default_gpu_num, memory_mib=hami.default_memory, cores=hami.default_cores),
    )


def compute_policy(hami: Hami) -> ComputePolicy:
    """How shares of compute are enforced. HAMi's default only limits under contention, which is a weight."""
    if hami.disable_core_limit or hami.gpu_core_policy == "disable":
        return "none"
    return "cap" if hami.gpu_core_policy == "force" else "weight"


def layout_rules(hami: Hami) -> tuple[AllowedInstances, ...]:
    """The rules that `knownMigGeometries` stands for."""
    return tuple(mig_rule(each.models, each.allowed_geometries) for each in hami.known_mig_geometries)


def profile_rules(hami: Hami) -> tuple[AllowedInstances, ...]:
    """The rules that `migProfileAllowlist` stands for."""
    return tuple(
        AllowedInstances(models=each.models, profiles=tuple(_profile(name) for name in each.profiles))
        for each in hami.mig_profile_allowlist
    )


def mig_rule(models: tuple[str, ...], layouts: Iterable[Layout]) -> AllowedInstances:
    """The rule that models may have one of these layouts."""
    return AllowedInstances(
        models=models,
        layouts=tuple(
            tuple(WrittenInstances(profile=_profile(each.name), count=each.count) for each in layout)
            for layout in layouts
        ),
    )


def modes(operating_mode: OperatingMode) -> Modes | None:
    """The modes that an operating mode names."""
    if not operating_mode:
        return None
    return ("quota",) if operating_mode == "hami-core" else (operating_mode,)


def node_override(node: NodeConfig) -> NodeOverride:
    """The overrides of one node."""
    excluded = node.filterdevices or FilterDevices()
    return NodeOverride(
        name=node.name,
        slots=node.devicesplitcount,
        memory_scaling=node.devicememoryscaling,
        compute_scaling=node.devicecorescaling,
        unreported_memory_mib=node.preconfigureddevicememory,
        modes=modes(node.operatingmode),
        log_level=None if node.libcudaloglevel is None else log_level(node.libcudaloglevel),
        mig_strategy=node.migstrategy,
        excluded_gpus=ExcludedGpus(uuids=excluded.uuid, indices=excluded.index),
    )


def log_level(written: LogLevelOrText) -> LogLevel:
    """The level as a number."""
    levels: tuple[LogLevel, ...] = (0, 1, 2, 3, 4)
    return levels[int(written)]


def _profile(name: str) -> str:
    return _PROFILE_NAMES.get(name, name)
