"""What the page shows, as plain data: the cluster in figures, each node with its GPUs, each pod with its shares.

Amounts are MiB of memory and percent of one GPU's time. Names come from tenants, so the page treats every string as
text and never as markup. A card refers to nothing that refers to it, so the garbage collector, which would stop the
server while it looks at a hundred thousand of them, passes them over.
"""

from collections.abc import Mapping

from msgspec import Struct


class GpuPart(Struct, frozen=True, kw_only=True, gc=False):
    """What a pod or a ResourceClaim holds of one GPU. `pod` is a UID; it is empty for a claim, and for pods that
    may not be shown."""

    pod: str
    name: str
    memory_mib: int
    cores: int
    compute_meaning: str = ""
    """As in `ShareCard`."""
    whole: bool = False
    unlimited: bool = False
    """Its memory is not limited to a part: it shares the GPU by time alone."""
    used_mib: int | None = None
    """What its containers use of it; None where that is not known."""
    instances: tuple[str, ...] = ()
    """MIG instances, such as `1g.5gb at 0`."""
    namespace: str = ""
    workload: str = ""
    """As in `PodCard`."""


class HealthSpan(Struct, frozen=True, gc=False):
    """From `since` on, in seconds since the epoch, a GPU was `healthy`, `unhealthy` for a reason, or `unknown`."""

    since: int
    state: str
    reason: str = ""


class GpuCard(Struct, frozen=True, kw_only=True, gc=False):
    """One GPU. `mode` is empty while it is idle; `stranded` if none of the pods in the cluster fits into what is free
    of it."""

    uuid: str
    index: int
    model: str
    memory_mib: int
    capacity_mib: int
    cores_capacity: int
    slots: int
    mode: str = ""
    healthy: bool = True
    reason: str = ""
    cordoned: bool = False
    native: str = ""
    """The resource by which kubelet allocates it without a grant."""
    taken_mib: int = 0
    taken_cores: int = 0
    taken_slots: int = 0
    stranded: bool = False
    used_mib: int | None = None
    """What all processes on it use; None where it is not known, like the next."""
    busy_percent: int | None = None
    """Of the last seconds, how much of the time a kernel ran."""
    health: tuple[HealthSpan, ...] = ()
    """What is known of the last hours, in the order of time. Each span ends where the next begins."""
    parts: tuple[GpuPart, ...] = ()


class NodeCard(Struct, frozen=True, kw_only=True, gc=False):
    """One node with an inventory."""

    name: str
    driver: str = ""
    ready: bool = True
    cordoned: bool = False
    """Whether Kubernetes places nothing new on the node."""
    native: tuple[str, ...] = ()
    """Native devices, counted, such as `8 nvidia.com/mig-1g.5gb`."""
    notes: tuple[str, ...] = ()
    mig: tuple[str, ...] = ()
    """The MIG configuration that the node is to have and its state, and the devices that it has, offered or not."""
    refused: tuple[str, ...] = ()
    """Configurations of the node that its agent refuses, each in a sentence."""
    pool: str = ""
    """The group of nodes that its provider has put it into; empty where there is none."""
    gpus: tuple[GpuCard, ...] = ()


class ShareCard(Struct, frozen=True, kw_only=True, gc=False):
    """One share of one container."""

    container: str
    node: str
    gpu: str
    index: int | None
    mode: str
    memory_mib: int
    """What is guaranteed."""
    most_mib: int
    """How much it may hold while the GPU has room; otherwise as `memory_mib`."""
    physical_mib: int
    cores: int
    compute_meaning: str = ""
    """What `cores` mean, such as `cap` or `lends`; see `lamina.report.compute`."""
    mig: str = ""
    priority: int | None = None
    """Of its requests on the GPU: those of 0 come first. None where the pod requested none, or where it counts for
    nothing."""
    used_mib: int | None = None
    """None where it is not known, like all that follows."""
    peak_mib: int | None = None
    busy_percent: int | None = None
    """GPU time over the last seconds."""
    borrowed_mib: int | None = None
    """What it holds beyond what is guaranteed."""
    spilled_mib: int | None = None
    """What became managed memory because the GPU was full."""
    limit_mib: int | None = None
    """The limit that is enforced now."""


class ContainerLimits(Struct, frozen=True, kw_only=True, gc=False):
    """What a container's limits say in the manifest."""

    container: str
    limits: dict[str, str]


class PodCard(Struct, frozen=True, kw_only=True, gc=False):
    """One pod that requests or holds GPUs, or a workload whose pods are refused, named by kind and name. `state` is
    `running`, `pending`, `refused` or `deleted`: a deleted pod has processes that still run. `reason` is one
    sentence, `why` are the lines of `lamina why`."""

    namespace: str
    name: str
    state: str
    phase: str = ""
    node: str = ""
    dialect: str = ""
    shares: tuple[ShareCard, ...] = ()
    limits: tuple[ContainerLimits, ...] = ()
    reason: str = ""
    why: tuple[str, ...] = ()
    ways_out: tuple[str, ...] = ()
    refused_memory: str = ""
    """When a container was last refused GPU memory, with its limit and peak; empty where none was lately."""
    workload: str = ""
    """What people named, such as `Deployment/web`; empty where it is not known."""
    created: int | None = None
    """Seconds since the epoch."""
    priority: int = 0
    priority_class: str = ""
    claims: tuple[str, ...] = ()
    """The names of its ResourceClaims that are about GPUs."""


class ClusterFigures(Struct, frozen=True, kw_only=True, gc=False):
    """The cluster in sums. `stranded_mib` is free memory of GPUs that take none of the pods in the cluster."""

    nodes: int = 0
    gpus: int = 0
    idle_gpus: int = 0
    unhealthy_gpus: int = 0
    cordoned_gpus: int = 0
    memory_mib: int = 0
    granted_mib: int = 0
    cores: int = 0
    granted_cores: int = 0
    stranded_gpus: int = 0
    stranded_mib: int = 0
    running_pods: int = 0
    waiting_pods: int = 0
    left_out: int = 0
    """Objects that could not be read."""
    used_mib: int | None = None
    """What all processes on the GPUs use, where that is known of one at least."""
    busy_percent: float | None = None
    """The mean over the GPUs of which it is known."""
    nodes_without_use: int = 0
    """Nodes with a GPU that is missing from what is used, where that is known of others."""
    cost_per_hour: float | None = None
    """Of what is granted, on GPUs with a price; None where none has one."""
    currency: str = ""
    unpriced_gpus: int = 0
    nodes_without_inventory: int = 0
    """Nodes that are labeled as having GPUs, but for which no agent has published an inventory."""
    configuration: str = ""
    """Why the text in the ConfigMap is refused; empty where it is in force."""


class ClusterDocument(Struct, frozen=True, kw_only=True, gc=False):
    """All of it. Nodes are by name, pods by UID."""

    cluster: ClusterFigures = ClusterFigures()
    nodes: Mapping[str, NodeCard] = {}
    pods: Mapping[str, PodCard] = {}
