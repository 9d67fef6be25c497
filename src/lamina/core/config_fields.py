"""The groups of fields of the configuration of a cluster; those for devices and dialects are in files of their own.

The documentation of each field is in its type: what it means, its unit, and the reason for the default.
docs/reference/configuration.md and configuration.schema.json are generated from it.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from lamina.core.field_types import (
    ByClaimRule,
    ComputePolicy,
    Count,
    FailurePolicy,
    GpuPolicy,
    Group,
    GroupKinds,
    Labels,
    Limit,
    LogLevel,
    Mebibytes,
    MemoryEnforcer,
    MigStrategy,
    Modes,
    Name,
    Namespaces,
    NodeName,
    NodePolicy,
    Percent,
    Scaling,
    SchedulerNames,
    Seconds,
    Slots,
    Switch,
    TimeSlice,
    Xids,
    doc,
    must_be,
)
from lamina.core.policies import PACKING

KIND: Final = "Configuration"

SCHEDULERS = ("default-scheduler", "lamina-scheduler")
"""The names of schedulers that are served whatever dialects there are; those that dialects have come in addition."""


class Sharing(Group, frozen=True, kw_only=True):
    """How GPUs are divided among containers. Overrides for single nodes are in `nodes.overrides`."""

    slots: Annotated[
        Slots,
        doc(
            "Most containers that may share one GPU. Each takes one slot, whatever the size of its share.",
            unit="containers",
            reason="HAMi's default; enough for services that need a tenth of a GPU each.",
        ),
    ] = 10
    memory_scaling: Annotated[
        Scaling,
        doc(
            "Memory that may be granted in total, as a multiple of the GPU's physical memory. Above 1, allocations "
            "beyond physical memory move to host memory.",
            unit="factor",
            reason="Host memory is slower, so oversubscription is opt-in.",
        ),
    ] = 1.0
    compute_scaling: Annotated[
        Scaling,
        doc(
            "Compute time that may be granted in total, as a multiple of one GPU's time. Above 1, shares are only met "
            "while not all containers are busy.",
            unit="factor",
            reason="Shares then add up to what the GPU can do, so that each can be met at any time.",
        ),
    ] = 1.0
    unreported_memory_mib: Annotated[
        Mebibytes,
        doc(
            "Memory that GPUs are taken to have whose driver reports none, because they share the memory of the "
            "machine; 0 does not offer such GPUs.",
            unit="MiB",
            reason="Memory of unknown size cannot be divided without risk to the rest of the machine.",
        ),
    ] = 0
    modes: Annotated[
        Modes | None,
        doc(
            "Modes in which grants may put idle GPUs, the preferred one first. `mig` applies to GPUs that can be "
            "partitioned; where it is the only mode, the others use `quota`. `mps` requires the MPS service. Not set "
            "means quota, and whole for exclusive shares.",
            reason="Making MIG instances for grants, and MPS, need rights that an installation has to opt in to.",
        ),
    ] = None
    compute_policy: Annotated[
        ComputePolicy,
        doc(
            "How shares of compute are enforced: `weight` guarantees the share under contention and lends idle time, "
            "`cap` never exceeds the share, `none` only counts shares when placing pods. "
            "`dialects.<name>.computePolicy` is for the pods of one dialect.",
            reason="Containers get at least their share, and idle time is not wasted. `cap` gives the same speed at "
            "any time.",
        ),
    ] = "weight"
    capped_namespaces: Annotated[
        Namespaces,
        doc(
            "Namespaces whose shares of compute are caps where they would lend idle time; `*` stands for all.",
            reason="Idle time is lent unless it is decided otherwise.",
        ),
    ] = ()
    low_priority_percent: Annotated[
        Percent,
        doc(
            "Part of the time in which containers of low priority may run while one of high priority is active.",
            unit="percent",
            reason="Low priority is not starved, and high priority hardly notices.",
        ),
    ] = 5
    high_priority_namespaces: Annotated[
        Namespaces,
        doc(
            "Namespaces whose containers may have high priority, which stops those of low priority on the same GPU; "
            "`*` stands for all. Elsewhere high priority counts as low.",
            reason="A tenant could stop its neighbors.",
        ),
    ] = ()
    memory_enforcer: Annotated[
        MemoryEnforcer,
        doc(
            "What enforces memory limits: `facade`, the library in the container; `driver`, the driver in addition to "
            "it, which also holds for programs that avoid the library; `auto`, the strongest that works on the node.",
            reason="Nodes with different drivers then need no configuration.",
        ),
    ] = "auto"
    log_level: Annotated[
        LogLevel,
        doc(
            "Log level of the facade in containers: 0 errors, 1 warnings, 2 and 3 information, 4 debug.",
            reason="Warnings are rare and explain failed allocations.",
        ),
    ] = 1


class Placement(Group, frozen=True, kw_only=True):
    """How nodes and GPUs are chosen for pods that do not choose themselves."""

    node_policy: Annotated[
        NodePolicy,
        doc(
            "Policy that chooses among nodes where a pod fits: `binpack` the fullest, `spread` the emptiest, `packing` "
            "the one where least capacity is expected to be stranded.",
            reason="It places the most requests on the same GPUs; `binpack` is HAMi's default.",
        ),
    ] = PACKING
    groups: Annotated[
        GroupKinds,
        doc(
            "Workloads whose pods get their GPUs together or not at all, without a PodGroup. Of Jobs, these are the "
            "indexed ones with as many completions as parallelism. The annotation `lamina.dev/group-min-members` of "
            "pods counts in any case.",
            reason="Their pods work together, and a part of them would hold GPUs and wait.",
        ),
    ] = ("JobSet", "LeaderWorkerSet", "RayCluster", "PyTorchJob", "Job")
    gpu_policy: Annotated[
        GpuPolicy,
        doc(
            "Policy that chooses among the GPUs of a node: the same three, and `numa` for GPUs of one NUMA node, "
            "`topology-aware` for well connected ones, `mutex` for idle ones only. Several are separated by commas.",
            reason="It places the most requests on the same GPUs; `spread` is HAMi's default.",
        ),
    ] = PACKING


class Health(Group, frozen=True, kw_only=True):
    """Which driver errors make a GPU unhealthy, and for how long."""

    ignored_xids: Annotated[
        Annotated[Literal["all"] | Xids, must_be("all or a list of XID numbers")],
        doc(
            "XIDs that do not make a GPU unhealthy, in addition to those of applications; `all` ignores every XID.",
            reason="An XID that no application caused points to hardware or driver, and new containers would meet it.",
        ),
    ] = ()
    counted_xids: Annotated[
        Xids,
        doc(
            "XIDs that always make a GPU unhealthy, even if they are ignored or caused by applications.",
            reason="The usual rule already counts every XID that points to hardware or driver.",
        ),
    ] = ()
    only_xids: Annotated[
        Xids,
        doc(
            "XIDs that make a GPU unhealthy while all others do not; empty for the usual rule.",
            reason="A list that is too short would keep broken GPUs in use.",
        ),
    ] = ()
    max_retired_pages: Annotated[
        Limit | None,
        doc(
            "Retired memory pages above which a GPU is unhealthy; null for no limit.",
            unit="pages",
            reason="CCE's limit. A GPU can retire 64 pages, then it has to be replaced.",
        ),
    ] = 60
    max_sram_errors: Annotated[
        Limit | None,
        doc(
            "Uncorrectable SRAM errors in the GPU's life above which it is unhealthy; null for no limit.",
            unit="errors",
            reason="CCE's limit. Repeated errors of this kind point to a part that fails.",
        ),
    ] = 4
    recovery_seconds: Annotated[
        Seconds,
        doc(
            "Time without such an error after which an unhealthy GPU that answers NVML is healthy again.",
            unit="seconds",
            reason="Keeps a GPU with a recurring error from alternating between healthy and unhealthy.",
        ),
    ] = 60.0


class Defragmentation(Group, frozen=True, kw_only=True):
    """Moving pods so that GPUs become idle, as `lamina defrag` does."""

    moves_per_hour: Annotated[
        Count,
        doc(
            "Most pods that the controller evicts in an hour to make GPUs idle; 0 for none. It also needs the chart "
            "value `controller.defragmentation=true`.",
            unit="pods",
            reason="A moved pod restarts, which not every workload can.",
        ),
    ] = 0


class Schedulers(Group, frozen=True, kw_only=True):
    """The schedulers that use Lamina's extender."""

    served: Annotated[
        SchedulerNames,
        doc(
            "Values of `spec.schedulerName` whose pods Lamina places. A pod that requests a GPU and names another "
            "scheduler is left to that one.",
            reason="The names in manifests for the supported dialects, which then work unchanged.",
        ),
    ] = SCHEDULERS
    assigned: Annotated[
        Name,
        doc(
            "Scheduler given to pods that request a GPU and name no other than default-scheduler. Pods in Volcano's, "
            "CCE's and KAI's dialects get their own, while it is among `served`. Empty keeps theirs.",
            reason="As with HAMi and CCE, manifests need not name a scheduler.",
        ),
    ] = "hami-scheduler"


class Admission(Group, frozen=True, kw_only=True):
    """What admission changes in pods."""

    hide_gpus: Annotated[
        Switch,
        doc(
            "Whether NVIDIA_VISIBLE_DEVICES=none is set in containers that request no GPU, and other ways to name "
            "GPUs are refused. Without it, images that ask NVIDIA's runtime for all GPUs see them. kube-system, "
            "Lamina's namespace and namespaces with the label `lamina.dev/webhook=ignore` are exempt.",
            reason="Changing pods that request no GPU is opt-in.",
        ),
    ] = False
    hiding_failure_policy: Annotated[
        FailurePolicy,
        doc(
            "What becomes of new pods while no controller answers and hideGpus is set: with `Ignore` they are created "
            "and GPUs are not hidden, with `Fail` they are refused.",
            reason="An outage of Lamina stops no pod that requests no GPU.",
        ),
    ] = "Ignore"
    runtime_class_name: Annotated[
        Name,
        doc(
            "Runtime class given to pods that request a GPU and name none, where NVIDIA's runtime is not the "
            "default one; empty sets none.",
            reason="Where NVIDIA's runtime is the default one, pods need no runtime class.",
        ),
    ] = ""
    by_claim: Annotated[
        ByClaimRule,
        doc(
            "Which pods that request shares by resources get a ResourceClaim in their place: `never` any, those that "
            'ask for it by the annotation `lamina.dev/by-claim: "true"` (`asked`), or all whose request a claim can '
            "express (`always`). Needs agents that serve claims.",
            reason="Claims need agents that serve them.",
        ),
    ] = "never"


class ExcludedGpus(Group, frozen=True, kw_only=True):
    """GPUs of one node that are not offered."""

    uuids: Annotated[
        Annotated[tuple[str, ...], must_be("a list of GPU UUIDs")],
        doc("UUIDs of GPUs that are not offered, as `nvidia-smi -L` lists them.", reason="All GPUs are offered."),
    ] = ()
    indices: Annotated[
        Annotated[tuple[Annotated[int, Meta(ge=0)], ...], must_be("a list of GPU indices from 0")],
        doc(
            "NVML indices of GPUs that are not offered. They may change when a GPU fails or is replaced; UUIDs do not.",
            reason="All GPUs are offered.",
        ),
    ] = ()


class NodeOverride(Group, frozen=True, kw_only=True):
    """Settings of one node. What is not set is as for all nodes."""

    name: Annotated[NodeName, doc("Name of the Node object.")]
    slots: Annotated[
        Slots | None,
        doc("Most containers that may share one GPU of the node.", unit="containers", reason="As `sharing.slots`."),
    ] = None
    memory_scaling: Annotated[
        Scaling | None,
        doc(
            "Memory that may be granted on each GPU of the node, as a multiple of its physical memory.",
            unit="factor",
            reason="As `sharing.memoryScaling`.",
        ),
    ] = None
    compute_scaling: Annotated[
        Scaling | None,
        doc(
            "Compute time that may be granted on each GPU of the node, as a multiple of the GPU's time.",
            unit="factor",
            reason="As `sharing.computeScaling`.",
        ),
    ] = None
    unreported_memory_mib: Annotated[
        Mebibytes | None,
        doc(
            "Memory that GPUs of the node are taken to have if their driver reports none.",
            unit="MiB",
            reason="As `sharing.unreportedMemoryMiB`.",
        ),
    ] = None
    modes: Annotated[
        Modes | None,
        doc(
            "Modes in which grants may put idle GPUs of the node, the preferred one first.",
            reason="As `sharing.modes`.",
        ),
    ] = None
    log_level: Annotated[
        LogLevel | None,
        doc("Log level of the facade in containers on the node, from 0 to 4.", reason="As `sharing.logLevel`."),
    ] = None
    mig_strategy: Annotated[
        MigStrategy | None, doc("How existing MIG devices of the node are offered.", reason="As `mig.strategy`.")
    ] = None
    time_slice: Annotated[
        TimeSlice | None,
        doc("Longest time slice on GPUs of the node with time-slicing.", reason="As `nativeDevices.timeSlice`."),
    ] = None
    excluded_gpus: Annotated[ExcludedGpus, doc("GPUs of the node that are not offered.")] = ExcludedGpus()


class Nodes(Group, frozen=True, kw_only=True):
    """Which nodes offer GPUs, and their own settings."""

    selector: Annotated[
        Labels,
        doc(
            "Labels that a node must have to offer its GPUs; all of them.",
            reason="Agents run on nodes with GPUs only, so that none needs a further label.",
        ),
    ] = field(default_factory=dict)
    overrides: Annotated[
        tuple[NodeOverride, ...],
        doc(
            "Settings of single nodes, one entry for each. They take precedence over `sharing`, `mig` and "
            "`nativeDevices`.",
            reason="All nodes have the same settings.",
        ),
    ] = ()
