"""A GPU as its node publishes it, and the inventory of all GPUs of a node.

An Inventory is a cluster-scoped object, named like its node and owned by it. The node's agent writes it, and only when
it changes.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta, Struct

from lamina.core.claims import MAX_CLAIMS, HeldClaim
from lamina.core.evictions import MAX_DISPLACED, MAX_IDLE, DisplacedBorrower, IdlePod
from lamina.core.fields import Moment, Name, Natural, UpToGpus, UpToMany, camel_case, means
from lamina.core.gpu_facts import MigInstance as MigInstance
from lamina.core.gpu_facts import Mode as Mode
from lamina.core.mps import MpsDaemon
from lamina.core.sharing import Strategy, TimeSlice
from lamina.core.sizes import MAX_APPLIED, AppliedSize
from lamina.core.survivors import MAX_SURVIVORS, Survivor

CORDON = "hami.io/device-cordon"
"""The annotation of a node that names the GPUs on which nothing new is placed: UUIDs, joined by commas."""
BY_GRANT = frozenset({Mode.WHOLE, Mode.QUOTA, Mode.MPS, Mode.MIG})
"""Modes in which grants can say who has which part. In the others, kubelet's own choice of a device does."""
NATIVE_MODES: Mapping[Strategy, Mode] = MappingProxyType(
    {Strategy.NONE: Mode.WHOLE, Strategy.TIME_SLICING: Mode.TIMESLICE, Strategy.MPS: Mode.MPS}
)
"""The mode of a GPU that kubelet allocates, by how its node offers it."""


class ExistingMigInstance(MigInstance, frozen=True, kw_only=True, omit_defaults=True):
    """A MIG instance that is on a GPU now. One that was not made for a grant may be granted, and stays."""

    made: Annotated[bool, means("Made for a grant; removed when no grant uses the instance any longer")] = False
    used: Annotated[bool, means("In use by a process that has no grant for the instance")] = False


class Gpu(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True):
    """One physical GPU."""

    uuid: Annotated[Name, means("UUID as NVML reports it")]
    index: Annotated[Natural, means("NVML index on the node")]
    model: Annotated[Name, means("Product name as NVML reports it")]
    memory_mib: Annotated[Natural, means("Physical memory in MiB")]
    capacity_mib: Annotated[
        Natural, means("Memory in MiB that may be granted in total: physical memory times the node's scaling")
    ]
    cores_capacity: Annotated[Natural, means("Percent of compute time that may be granted in total")] = 100
    slots: Annotated[Natural, means("Number of containers that may share the GPU")] = 10
    mig_capable: Annotated[bool, means("Whether the GPU supports MIG")] = False
    numa: Annotated[Natural | None, means("NUMA node; absent if unknown")] = None
    minor: Annotated[Natural | None, means("Number of its device file; absent if that is the index or unknown")] = None
    """Claims name the GPU by it."""
    healthy: Annotated[bool, means("Whether new shares may be placed on the GPU")] = True
    reason: Annotated[str, means("Why the GPU is unhealthy; empty while it is healthy")] = ""
    cordoned: Annotated[bool, means("No new shares are placed on the GPU; existing ones stay")] = False
    links: Annotated[
        tuple[Natural, ...],
        UpToGpus,
        means(
            "Quality of the connection to each GPU of this inventory, in their order, 0 for itself; empty if unknown"
        ),
    ] = ()
    mode: Annotated[Mode | None, means("Mode that the containers on the GPU put it in; absent while it is idle")] = None
    native_resource: Annotated[
        str,
        means(
            "Resource by which kubelet allocates the GPU as a native device, without a grant; "
            "empty if the GPU is shared by grants"
        ),
    ] = ""
    modes: Annotated[
        tuple[Mode, ...],
        UpToGpus,
        means(
            "Modes that grants may put the GPU in while it is idle, the preferred one first; "
            "empty means quota and whole"
        ),
    ] = ()
    """MIG is among them only where `mig_card` is known, because instances can be made for grants there."""
    mig_card: Annotated[str, means("Card whose MIG profiles the GPU has, if grants may partition it")] = ""
    """A key of `mig_cards.MIG_CARDS`."""
    mig_enabled: Annotated[bool, means("Whether MIG mode is enabled")] = False
    instances: Annotated[
        tuple[ExistingMigInstance, ...],
        UpToGpus,
        means("MIG instances on the GPU, used or not; only for GPUs that grants may partition"),
    ] = ()
    time_slice: Annotated[
        TimeSlice | None, means("Longest time slice in the node's configuration; absent leaves it to the driver")
    ] = None
    time_slice_failure: Annotated[str, means("Why the driver did not accept the time slice; empty if it did")] = ""

    @property
    def number(self) -> int:
        """By which claims name the GPU."""
        return self.index if self.minor is None else self.minor

    @property
    def by_grant(self) -> bool:
        """Whether new shares of the GPU may be granted: its node offers it for shares, and nothing else uses it."""
        return not self.native_resource and (self.mode is None or self.mode in BY_GRANT)


def cordoned(annotations: Mapping[str, str] | None) -> frozenset[str]:
    """The UUIDs that a node's annotations cordon."""
    return frozenset(uuid for part in (annotations or {}).get(CORDON, "").split(",") if (uuid := part.strip()))


class NativeResource(Struct, frozen=True):
    """A resource of native devices, which kubelet allocates without a grant."""

    resource: Annotated[Name, means("Resource name, such as nvidia.com/gpu")]
    count: Annotated[Natural, means("Number of devices, replicas included")]
    replicas: Annotated[Natural, means("Number of replicas of each GPU or MIG device")] = 1
    sharing: Annotated[Strategy, means("Strategy by which replicas share a GPU")] = Strategy.NONE


class MigDeviceCount(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True):
    """The MIG devices of one profile that kubelet may allocate."""

    profile: Annotated[Name, means("MIG profile, such as 1g.5gb")]
    count: Annotated[Natural, means("Number of devices")]
    resource: Annotated[str, means("Resource by which the node offers them; empty if it does not")] = ""
    reason: Annotated[str, means("Why the node does not offer them; empty if it does")] = ""


MAX_REFUSED = 8
MAX_REASON = 1024


class RefusedConfiguration(Struct, frozen=True, kw_only=True, rename=camel_case):
    """A configuration of the node that its agent refuses, or that is not there."""

    source: Annotated[str, Meta(max_length=MAX_REASON), means("What names it or contains it, such as a ConfigMap")]
    reason: Annotated[str, Meta(max_length=MAX_REASON), means("Why, and what applies instead")]
    since: Annotated[Moment, means("Since when, in seconds since 1970")]


class Inventory(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True):
    """The GPUs of one node, written by its agent."""

    node: Annotated[Name, means("Name of the node")]
    driver: Annotated[str, means("Version of the NVIDIA driver")] = ""
    gpus: Annotated[tuple[Gpu, ...], UpToGpus, means("GPUs of the node, in the order of their indices")] = ()
    native_resources: Annotated[
        tuple[NativeResource, ...],
        UpToMany,
        means("Native devices of the node; kube-scheduler places pods that request only these"),
    ] = ()
    tickets: Annotated[
        tuple[Annotated[str, Meta(max_length=317)], ...],
        Meta(max_length=16),
        means(
            "Resources of which only pods with a grant are to have some: a policy refuses others that are "
            "created on this node with them"
        ),
    ] = ()
    driver_limited: Annotated[
        tuple[str, ...],
        UpToMany,
        means("Containers whose memory the driver limits in addition to the facade, as <pod UID>/<container name>"),
    ] = ()
    mps: Annotated[tuple[MpsDaemon, ...], UpToGpus, means("MPS daemons, including those that are stopping")] = ()
    mig_leftovers: Annotated[
        tuple[str, ...],
        UpToMany,
        means("MIG instances that Lamina made and could not remove yet, and why, one sentence each"),
    ] = ()
    survivors: Annotated[
        tuple[Survivor, ...],
        Meta(max_length=MAX_SURVIVORS),
        means("Deleted pods whose processes still run; their shares count until these have ended"),
    ] = ()
    resized: Annotated[
        tuple[AppliedSize, ...], Meta(max_length=MAX_APPLIED), means("Containers that were resized")
    ] = ()
    idle: Annotated[
        tuple[IdlePod, ...],
        Meta(max_length=MAX_IDLE),
        means("Pods that have used no GPU for as long as `idleShares.hours` says"),
    ] = ()
    displaced: Annotated[
        tuple[DisplacedBorrower, ...],
        Meta(max_length=MAX_DISPLACED),
        means(
            "Pods that keep borrowed memory on the host because neighbors need the GPU's, the youngest of "
            "each GPU, where `borrowers.seconds` is set"
        ),
    ] = ()
    refused: Annotated[
        tuple[RefusedConfiguration, ...],
        Meta(max_length=MAX_REFUSED),
        means("Configurations of the node that its agent refuses"),
    ] = ()
    claims: Annotated[
        tuple[HeldClaim, ...],
        Meta(max_length=MAX_CLAIMS),
        means("ResourceClaims that are prepared; their GPUs take no grants"),
    ] = ()
    mig_devices: Annotated[
        tuple[MigDeviceCount, ...],
        UpToGpus,
        means("MIG devices that exist, offered or not, apart from those that grants have made"),
    ] = ()

    def offers_native_devices(self, resources: Iterable[str]) -> bool:
        """Whether the node offers all of these, and there are any."""
        wanted = set(resources)
        return bool(wanted) and wanted <= {each.resource for each in self.native_resources}
