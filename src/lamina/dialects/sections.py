"""The sections of the configuration file: HAMi's and Volcano's keys with their defaults, and the per-node list.

Each key is spelled as its system spells it, so that an existing configuration can be carried over by copying. Every key
takes effect or is refused: a value that cannot be honoured (NUMA alignment, the MIG operating mode) is not accepted.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from lamina.dialects.geometries import AllowedProfiles, HamiGeometry, VolcanoGeometry
from lamina.model.policies import GPU_POLICIES, NODE_POLICIES, PACKING

ResourceName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
        description="a resource name such as nvidia.com/gpu",
    ),
]
Percent = Annotated[int, Meta(ge=0, le=100, description="a whole number from 0 to 100")]
Mebibytes = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a whole number of MiB from 0 to 2147483647")]
Count = Annotated[int, Meta(ge=0, le=1000, description="a whole number from 0 to 1000")]
Factor = Annotated[int, Meta(ge=1, le=2**20, description="a whole number from 1 to 1048576")]
SplitCount = Annotated[int, Meta(ge=1, le=1000, description="a whole number from 1 to 1000")]
Scaling = Annotated[float, Meta(ge=0.01, le=100, description="a number from 0.01 to 100")]
Switch = Annotated[bool, Meta(description="true or false")]
Xids = Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(description="a list of the numbers of XIDs")]
Name = Annotated[str, Meta(max_length=253, description="a name of at most 253 characters")]
LogLevel = Annotated[
    Literal[0, 1, 2, 3, 4, "0", "1", "2", "3", "4"],
    Meta(description="0 (errors), 1 (warnings), 2, 3 (information) or 4 (debugging)"),
]
MigStrategy = Annotated[Literal["none", "single", "mixed"], Meta(description="none, single or mixed")]
CorePolicy = Annotated[Literal["default", "force", "disable"], Meta(description="default, force or disable")]
NodePolicy = Annotated[str, Meta(pattern=f"^({'|'.join(NODE_POLICIES)})$", description=" or ".join(NODE_POLICIES))]
_GPU_POLICY = f"({'|'.join(GPU_POLICIES)})"
GpuPolicy = Annotated[
    str,
    Meta(
        pattern=f"^{_GPU_POLICY}(, ?{_GPU_POLICY})*$",
        description=f"{' or '.join(GPU_POLICIES)}, or several of them joined by commas",
    ),
]
OperatingMode = Annotated[
    Literal["", "hami-core", "mig"], Meta(description="hami-core or mig; the operating mode mps is not offered")
]
Modes = Annotated[
    tuple[Literal["quota", "mig"], ...],
    Meta(min_length=1, max_length=2, description="a list of quota and mig, the preferred one first"),
]
Fallback = Annotated[Literal["named", "single", "empty"], Meta(description="named, single or empty")]
ReplicaMemory = Annotated[Literal["shared", "equal"], Meta(description="shared or equal")]
Slice = Annotated[Literal["default", "short", "medium", "long"], Meta(description="default, short, medium or long")]
HamiGeometries = Annotated[tuple[HamiGeometry, ...], Meta(description="a list of models with allowedGeometries")]
VolcanoGeometries = Annotated[
    tuple[VolcanoGeometry, ...], Meta(description="a list of models with allowedGeometries, each a named group")
]
AllowedMigProfiles = Annotated[tuple[AllowedProfiles, ...], Meta(description="a list of models with profiles")]
Labels = Annotated[dict[str, str], Meta(description='labels and values, both as texts, such as gpu: "on"')]


class Hami(Struct, frozen=True, kw_only=True, rename="camel"):
    """HAMi's settings of the NVIDIA family. Memory is in MiB, cores in percent of one GPU's time."""

    resource_count_name: ResourceName = "nvidia.com/gpu"
    resource_memory_name: ResourceName = "nvidia.com/gpumem"
    resource_memory_percentage_name: ResourceName = "nvidia.com/gpumem-percentage"
    resource_core_name: ResourceName = "nvidia.com/gpucores"
    resource_priority_name: ResourceName = "nvidia.com/priority"

    overwrite_env: Switch = False
    """Containers that ask no GPU are told to see none (NVIDIA_VISIBLE_DEVICES=none), whether or not others of their pod
    ask for one."""
    default_memory: Mebibytes = 0
    """Memory where a container names a GPU but neither amount nor percentage; 0 means all of the GPU."""
    default_cores: Percent = 0
    """Cores where a shared container names none; 0 means whatever time is left, 100 the GPU for itself."""
    default_gpu_num: Count = field(default=1, name="defaultGPUNum")
    """Number of GPUs where a container names only memory or cores; 0 means that it has to name it."""
    memory_factor: Factor = 1
    """How many MiB one unit of the memory resource stands for."""

    device_split_count: SplitCount = 10
    device_memory_scaling: Scaling = 1
    device_core_scaling: Scaling = 1
    pre_configured_device_memory: Mebibytes = 0
    """Memory of GPUs that cannot report it (unified memory); 0 means that such GPUs are not offered."""
    enable_numa_topology: Switch = False
    mig_strategy: MigStrategy = "none"
    """What becomes of MIG devices: `mixed` offers them by names such as nvidia.com/mig-1g.5gb, `single` as
    nvidia.com/gpu where all GPUs are cut into one profile, `none` to nobody. GPUs in MIG mode are never shared, for
    they have no memory and compute beside their instances."""
    lib_cuda_log_level: LogLevel = 1

    gpu_core_policy: CorePolicy = "default"
    """`default`: idle time is lent to others; `force`: never more than the share; `disable`: not held."""
    disable_core_limit: Switch = False
    """Shares of compute are counted in placement but not held on the node."""
    runtime_class_name: Name = ""
    """Runtime class given to pods that ask a GPU and name none; empty leaves them alone."""
    scheduler_name: Name = "hami-scheduler"
    """Scheduler given to pods that ask a GPU and name none but the default one; empty leaves the default one."""
    node_scheduler_policy: NodePolicy = PACKING
    gpu_scheduler_policy: GpuPolicy = PACKING
    known_mig_geometries: HamiGeometries = ()
    """The MIG layouts that models may have; a model without an entry may have all of its card's."""
    mig_profile_allowlist: AllowedMigProfiles = ()
    """The MIG profiles that models may have."""


class Volcano(Struct, frozen=True, kw_only=True, rename="camel"):
    """The names of Volcano's vGPUs, with the keys of its device configuration."""

    resource_count_name: ResourceName = "volcano.sh/vgpu-number"
    resource_memory_name: ResourceName = "volcano.sh/vgpu-memory"
    resource_memory_percentage_name: ResourceName = "volcano.sh/vgpu-memory-percentage"
    resource_core_name: ResourceName = "volcano.sh/vgpu-cores"
    gpu_memory_factor: Factor = field(default=1, name="gpuMemoryFactor")
    """How many MiB one unit of the memory resource stands for."""
    known_mig_geometries: VolcanoGeometries = ()
    """The MIG layouts that models may have, beside HAMi's."""


class Health(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which errors (XIDs) of the driver make a GPU unhealthy, and for how long."""

    disable: Literal["all", "xids"] | Xids = ()
    """Errors that do not count, beside those of applications; all or xids: none does. As DP_DISABLE_HEALTHCHECKS."""
    enable: Xids = ()
    """Errors that count whatever else is said. As DP_ENABLE_HEALTHCHECKS."""
    only: Xids = ()
    """If there are any, no others count. As CCE's health_check_xids."""
    retired_pages: Annotated[int, Meta(ge=0, description="a whole number from 0")] | None = 60
    """More pages retired than these make a GPU unhealthy; null: they are not counted. CCE's limit."""
    sram_errors: Annotated[int, Meta(ge=0, description="a whole number from 0")] | None = 4
    """More errors of SRAM that could not be corrected do; null: they are not counted. CCE's limit."""
    quiet_seconds: Annotated[float, Meta(ge=0, le=86400, description="a number from 0 to 86400")] = 60.0
    """A GPU comes back when it answers and has been free of such errors for so long."""


class NodeMarks(Struct, frozen=True, kw_only=True):
    """What agents write on their nodes for tools of other systems."""

    labels: Switch = True
    """The labels of GPU feature discovery, but those that node feature discovery has listed as its own."""
    registers: Annotated[tuple[Literal["hami", "volcano"], ...], Meta(description="a list of hami and volcano")] = (
        "hami",
        "volcano",
    )
    """The annotations in which these systems list a node's devices."""
    amounts: Annotated[
        tuple[Literal["hami", "volcano", "cce"], ...], Meta(description="a list of hami, volcano and cce")
    ] = ("volcano", "cce")
    """The systems whose extended resources of memory and compute are sums. Those of others have plenty."""


class NamedConfigs(Struct, frozen=True, kw_only=True, rename="camel"):
    """The ConfigMap that holds NVIDIA's named configurations, with the keys of ClusterPolicy's devicePlugin.config."""

    name: Name = ""
    namespace: Name = "nvidia-gpu-operator"
    default: Name = ""
    """The configuration of nodes without a label that names one."""


class Nvidia(Struct, frozen=True, kw_only=True, rename="camel"):
    """NVIDIA's ways of sharing. A node has one of NVIDIA's configurations where its label or a default names it."""

    config: NamedConfigs = NamedConfigs()
    """Where a ClusterPolicy names a ConfigMap, its name and default go before these."""
    configs: Annotated[dict[str, Any], Meta(description="named configurations, each a mapping with version: v1")] = {}
    """Named configurations written here, for where no ConfigMap is named."""
    fallbacks: tuple[Fallback, ...] = ("empty",)
    """What holds where neither a label nor a default says."""
    mig_strategy: MigStrategy | None = None
    replica_memory: ReplicaMemory = "shared"
    """`shared`: containers with replicas see all of the GPU's memory, as NVIDIA has it. `equal`: each replica is held
    to an equal part of it."""
    operatingmode: OperatingMode = ""
    """`hami-core` is the mode quota alone, `mig` the mode mig alone; where `modes` are named it is left out."""
    modes: Modes | None = None
    """The modes that grants may put idle GPUs in. `mig` holds for GPUs that can be cut; the others are in quota."""
    time_slice: Slice | None = None
    """How long turns are at most on GPUs that are shared by time-slicing; None leaves that to the driver."""


class FilterDevices(Struct, frozen=True, kw_only=True):
    """GPUs of one node that are not to be offered, by UUID or by index."""

    uuid: Annotated[tuple[str, ...], Meta(description="a list of GPU UUIDs")] = ()
    index: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(description="a list of GPU indices from 0")] = ()


class NodeConfig(Struct, frozen=True, kw_only=True):
    """Settings of one node, spelled as in HAMi's config.json. None leaves the cluster's setting."""

    name: Annotated[str, Meta(min_length=1, description="the name of a node")]
    operatingmode: OperatingMode = ""
    modes: Modes | None = None
    devicesplitcount: SplitCount | None = None
    devicememoryscaling: Scaling | None = None
    devicecorescaling: Scaling | None = None
    preconfigureddevicememory: Mebibytes | None = None
    enablenumatopology: Switch = False
    libcudaloglevel: LogLevel | None = None
    migstrategy: MigStrategy | None = None
    timeslice: Slice | None = None
    filterdevices: FilterDevices | None = None
    enablegetpreferredallocation: Switch = False
