"""The spec of an Inventory: the GPUs of one node and the state that they are in.

An Inventory is a cluster-scoped object, named like its node and owned by it. The node's agent writes it, and only when
it changes. Names, order and defaults of the fields are what existing objects have: add fields, change none.

Numbers, names and lists are bounded, because one compromised node must not stop the controller: placement computes with
arrays of integers, and keeps a cell for every GPU of the largest node for each node.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from lamina.api.v1alpha1.bounds import Mode, Name, Natural
from lamina.api.v1alpha1.grant import ContainerGrant
from lamina.model.borrowers import MAX_DISPLACED
from lamina.model.claims import MAX_CLAIMS
from lamina.model.idle import MAX_IDLE
from lamina.model.requests import MAX_CONTAINERS
from lamina.model.sizes import MAX_APPLIED
from lamina.model.survivors import MAX_SURVIVORS

_GPUS, _MANY = Meta(max_length=128), Meta(max_length=10_000)


class ExistingMigInstance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A MIG instance that is on a GPU now."""

    profile: Annotated[Name, Meta(description="MIG profile, such as 1g.5gb")]
    start: Annotated[Natural, Meta(description="Memory slice at which the instance begins")]
    made: Annotated[bool, Meta(description="Made for a grant; removed when no grant uses the instance any longer")] = (
        False
    )
    used: Annotated[bool, Meta(description="In use by a process that has no grant for the instance")] = False


class Gpu(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One physical GPU."""

    uuid: Annotated[Name, Meta(description="UUID as NVML reports it")]
    index: Annotated[Natural, Meta(description="NVML index on the node")]
    model: Annotated[Name, Meta(description="Product name as NVML reports it")]
    memory_mib: Annotated[Natural, Meta(description="Physical memory in MiB")] = field(name="memoryMiB")
    capacity_mib: Annotated[
        Natural,
        Meta(description="Memory in MiB that may be granted in total: physical memory times the node's scaling"),
    ] = field(name="capacityMiB")
    cores_capacity: Annotated[Natural, Meta(description="Percent of compute time that may be granted in total")] = 100
    slots: Annotated[Natural, Meta(description="Number of containers that may share the GPU")] = 10
    mig_capable: Annotated[bool, Meta(description="Whether the GPU supports MIG")] = False
    numa: Annotated[Natural | None, Meta(description="NUMA node; absent if unknown")] = None
    minor: Annotated[
        Natural | None, Meta(description="Number of its device file; absent if that is the index or unknown")
    ] = None
    healthy: Annotated[bool, Meta(description="Whether new shares may be placed on the GPU")] = True
    reason: Annotated[str, Meta(description="Why the GPU is unhealthy; empty while it is healthy")] = ""
    cordoned: Annotated[bool, Meta(description="No new shares are placed on the GPU; existing ones stay")] = False
    links: Annotated[
        tuple[Natural, ...],
        _GPUS,
        Meta(
            description="Quality of the connection to each GPU of this inventory, in their order, 0 for itself; "
            "empty if unknown"
        ),
    ] = ()
    mode: Annotated[
        Mode | None, Meta(description="Mode that the containers on the GPU put it in; absent while it is idle")
    ] = None
    native_resource: Annotated[
        str,
        Meta(
            description="Resource by which kubelet allocates the GPU as a native device, without a grant; "
            "empty if the GPU is shared by grants"
        ),
    ] = field(name="plain", default="")
    modes: Annotated[
        tuple[Mode, ...],
        _GPUS,
        Meta(
            description="Modes that grants may put the GPU in while it is idle, the preferred one first; "
            "empty means quota and whole"
        ),
    ] = ()
    mig_card: Annotated[str, Meta(description="Card whose MIG profiles the GPU has, if grants may partition it")] = ""
    mig_enabled: Annotated[bool, Meta(description="Whether MIG mode is enabled")] = False
    instances: Annotated[
        tuple[ExistingMigInstance, ...],
        _GPUS,
        Meta(description="MIG instances on the GPU, used or not; only for GPUs that grants may partition"),
    ] = ()
    time_slice: Annotated[
        Literal["default", "short", "medium", "long"] | None,
        Meta(description="Longest time slice in the node's configuration; absent leaves it to the driver"),
    ] = None
    time_slice_failure: Annotated[
        str, Meta(description="Why the driver did not accept the time slice; empty if it did")
    ] = ""


class NativeResource(Struct, frozen=True):
    """A resource of native devices, which kubelet allocates without a grant."""

    resource: Annotated[Name, Meta(description="Resource name, such as nvidia.com/gpu")]
    count: Annotated[Natural, Meta(description="Number of devices, replicas included")]
    replicas: Annotated[Natural, Meta(description="Number of replicas of each GPU or MIG device")] = 1
    sharing: Annotated[
        Literal["none", "time-slicing", "mps"], Meta(description="Strategy by which replicas share a GPU")
    ] = "none"


class MpsDaemon(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The MPS control daemon of one GPU."""

    gpu: Annotated[Name, Meta(description="UUID of the GPU")]
    state: Annotated[
        Literal["ready", "starting", "waiting", "failed", "stopping"],
        Meta(description="State of the daemon; containers start on its GPU only while it is ready"),
    ]
    reason: Annotated[str, Meta(description="Why the daemon is not ready; empty while it is")] = ""
    memory_mib: Annotated[Natural, Meta(description="Memory in MiB that each client may allocate")] = field(
        name="memoryMiB", default=0
    )
    threads_percent: Annotated[Natural, Meta(description="Percent of the GPU's threads that each client may use")] = 0
    for_grants: Annotated[
        bool, Meta(description="Clients have grants, with limits of their own within those of the daemon")
    ] = False


class Survivor(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that is deleted, or finished, while its processes run on the node."""

    namespace: Annotated[Name, Meta(description="Namespace of the pod")]
    pod: Annotated[Name, Meta(description="Name of the pod")]
    pod_uid: Annotated[Name, Meta(description="UID of the pod")] = field(name="podUID")
    containers: Annotated[
        tuple[ContainerGrant, ...], Meta(max_length=MAX_CONTAINERS, description="Containers with shares")
    ]


class HeldClaim(Struct, frozen=True, kw_only=True, rename="camel"):
    """A ResourceClaim that is prepared on the node."""

    namespace: Annotated[Name, Meta(description="Namespace of the claim")]
    name: Annotated[Name, Meta(description="Name of the claim")]
    uid: Annotated[Name, Meta(description="UID of the claim")]
    requests: Annotated[
        tuple[ContainerGrant, ...],
        Meta(max_length=MAX_CONTAINERS, description="Requests, with what all their containers have together"),
    ]


class AppliedSize(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The size that a resized container has."""

    pod_uid: Annotated[Name, Meta(description="UID of the pod")] = field(name="podUID")
    container: Annotated[Name, Meta(description="Name of the container")]
    generation: Annotated[Natural, Meta(description="Generation of the size in the grant that is applied")]
    waiting: Annotated[str, Meta(description="Why a later size is not applied yet")] = ""
    held_generation: Annotated[
        Natural, Meta(description="Generation of the later size if programs hold more memory than that; otherwise 0")
    ] = 0
    memory_mib: Annotated[Natural, Meta(description="Memory limit in MiB that the container has")] = field(
        name="memoryMiB", default=0
    )
    cores: Annotated[Natural, Meta(description="Percent of the GPU's compute time that the container has")] = 0


class MigDeviceCount(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The MIG devices of one profile that kubelet may allocate."""

    profile: Annotated[Name, Meta(description="MIG profile, such as 1g.5gb")]
    count: Annotated[Natural, Meta(description="Number of devices")]
    resource: Annotated[str, Meta(description="Resource by which the node offers them; empty if it does not")] = ""
    reason: Annotated[str, Meta(description="Why the node does not offer them; empty if it does")] = ""


class IdlePod(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that holds a GPU and does not use it."""

    pod_uid: Annotated[Name, Meta(description="UID of the pod")] = field(name="podUID")
    since: Annotated[
        int, Meta(ge=0, le=1 << 40, description="When it last used a GPU, in seconds since the beginning of 1970")
    ]


class DisplacedBorrower(Struct, frozen=True, kw_only=True, rename="camel"):
    """The youngest borrower of a GPU whose memory neighbors need."""

    pod_uid: Annotated[Name, Meta(description="UID of the pod")] = field(name="podUID")
    since: Annotated[
        int,
        Meta(ge=0, le=1 << 40, description="When it had to keep memory on the host, in seconds since 1970"),
    ]


class Inventory(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The GPUs of one node, written by its agent."""

    node: Annotated[Name, Meta(description="Name of the node")]
    driver: Annotated[str, Meta(description="Version of the NVIDIA driver")] = ""
    gpus: Annotated[tuple[Gpu, ...], _GPUS, Meta(description="GPUs of the node, in the order of their indices")] = ()
    native_resources: Annotated[
        tuple[NativeResource, ...],
        _MANY,
        Meta(description="Native devices of the node; kube-scheduler places pods that request only these"),
    ] = field(name="plain", default=())
    tickets: Annotated[
        tuple[Annotated[str, Meta(max_length=317)], ...],
        Meta(
            max_length=16,
            description="Resources of which only pods with a grant are to have some: a policy refuses others that are "
            "created on this node with them",
        ),
    ] = ()
    driver_limited: Annotated[
        tuple[str, ...],
        _MANY,
        Meta(
            description="Containers whose memory the driver limits in addition to the facade, "
            "as <pod UID>/<container name>"
        ),
    ] = field(name="driverHeld", default=())
    mps: Annotated[
        tuple[MpsDaemon, ...], _GPUS, Meta(description="MPS daemons, including those that are stopping")
    ] = ()
    mig_leftovers: Annotated[
        tuple[str, ...],
        _MANY,
        Meta(description="MIG instances that Lamina made and could not remove yet, and why, one sentence each"),
    ] = field(name="migLeft", default=())
    survivors: Annotated[
        tuple[Survivor, ...],
        Meta(
            max_length=MAX_SURVIVORS,
            description="Deleted pods whose processes still run; their shares count until these have ended",
        ),
    ] = ()
    resized: Annotated[
        tuple[AppliedSize, ...], Meta(max_length=MAX_APPLIED, description="Containers that were resized")
    ] = ()
    idle: Annotated[
        tuple[IdlePod, ...],
        Meta(max_length=MAX_IDLE, description="Pods that have used no GPU for as long as `idleShares.hours` says"),
    ] = ()
    displaced: Annotated[
        tuple[DisplacedBorrower, ...],
        Meta(
            max_length=MAX_DISPLACED,
            description="Pods that keep borrowed memory on the host because neighbors need the GPU's, the youngest of "
            "each GPU, where `borrowers.seconds` is set",
        ),
    ] = ()
    claims: Annotated[
        tuple[HeldClaim, ...],
        Meta(max_length=MAX_CLAIMS, description="ResourceClaims that are prepared; their GPUs take no grants"),
    ] = ()
    mig_devices: Annotated[
        tuple[MigDeviceCount, ...],
        _GPUS,
        Meta(description="MIG devices that exist, offered or not, apart from those that grants have made"),
    ] = ()
