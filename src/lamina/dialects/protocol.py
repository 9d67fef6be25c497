"""What a dialect is: everything that Lamina knows of one family of resource names and annotations.

A dialect is one folder of this package with one class that implements `Dialect`, and one entry in `registry.DIALECTS`.
Dialects do not know each other. They take plain data and return plain data: the controller and the agent ask the
registry, then write or render what they get. No other code depends on the name of a dialect.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from lamina.core.config import Config
from lamina.core.field_types import Group
from lamina.core.gpus import Gpu
from lamina.core.grants import ComputePolicy
from lamina.core.requests import PodRequest
from lamina.dialects.choices import ChoiceAnnotations, Choices
from lamina.dialects.containers import ContainerManifest, is_zero
from lamina.dialects.metadata import BoundPod, Metadata, NodeFacts
from lamina.dialects.metrics import ClusterMetrics, NodeMetrics
from lamina.dialects.patches import PatchOperation, add_limits, add_request, remove_resource
from lamina.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class ResourceNames:
    """The names under which containers request shares in one dialect; an empty name is one that it does not have.

    kubelet allocates tickets for `ticket`, so every container with a share has to request it, and kube-scheduler counts
    it on nodes. kube-scheduler ignores the other names. Without `ticket` the dialect's pods need no grant.
    """

    ticket: str = ""
    ticket_prefix: str = ""
    """What the device IDs of tickets start with, and part of the name of the plugin's socket; unique."""
    ticket_mib: int = 0
    """How much memory a ticket stands for; 0 where it stands for one GPU of a container."""
    count: str = ""
    memory: str = ""
    memory_unit_mib: int = 1
    """How many MiB one unit of `memory` stands for."""
    memory_percentage: str = ""
    cores: str = ""
    priority: str = ""

    @cached_property
    def all(self) -> tuple[str, ...]:
        """Every name, the count first."""
        names = (self.count, self.memory, self.memory_percentage, self.cores, self.priority)
        return tuple(name for name in names if name)

    @cached_property
    def ignored_by_scheduler(self) -> tuple[str, ...]:
        """Names that kube-scheduler must not look for on nodes."""
        return tuple(name for name in self.all if name != self.ticket)


class PodManifest(NamedTuple):
    """What dialects read of a pod."""

    containers: Sequence[ContainerManifest]
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    choice_annotations: ChoiceAnnotations
    """Those of all dialects: a pod may use the annotations of any."""
    config: Config
    namespace: str

    def compute_policy(self, of_dialect: str | None) -> ComputePolicy:
        """How its shares of compute are enforced: as its dialect says, or else the cluster, and never lent where its
        namespace has caps."""
        policy = ComputePolicy(of_dialect or self.config.sharing.compute_policy)
        capped = policy is ComputePolicy.WEIGHT and self.config.caps_compute(self.namespace)
        return ComputePolicy.CAP if capped else policy

    def read_choices(self) -> Choices:
        """What the annotations choose. Raises BadInput."""
        return self.choice_annotations.read(self.annotations, self.config)


class WantedSize(NamedTuple):
    """MiB and percent of each GPU; None leaves what is requested."""

    memory_mib: int | None
    cores: int | None


class Listed(NamedTuple):
    """How a list in the configuration's group `compatibility` names what a dialect writes for tools."""

    name: str
    by_default: bool = True


class Dialect(Protocol):
    """One dialect. Attributes and methods have defaults that fit dialects without that feature."""

    name: str
    """How grants record it."""
    section: type[Group] | None = None
    """The type of its section of the configuration, `dialects.<name>`: an option in each field, all with defaults.

    `Config.section` returns what is written there. Strings in a field `resources` are names of resources, which must
    differ from those of other dialects.
    """
    schedulers: tuple[str, ...] = ()
    """The schedulers that its manifests name. `schedulers.served` has them by default."""
    listed_annotations: Listed | None = None
    """How `compatibility.annotations` chooses the annotations of nodes; None if there are none."""
    listed_resources: Listed | None = None
    """How `compatibility.resources` chooses whether nodes have sums of memory and cores under its names, instead of a
    large number; None if they never do."""
    listed_metrics: Listed | None = None
    """How `compatibility.metrics` chooses its metrics; None if there are none."""
    node_metrics: NodeMetrics = NodeMetrics()
    """What agents serve."""
    cluster_metrics: ClusterMetrics = ClusterMetrics()
    """What the controller serves."""
    choice_annotations: ChoiceAnnotations = ChoiceAnnotations()
    """The annotations by which pods choose GPUs, policies and modes."""
    pod_annotations: tuple[str, ...] = ()
    """The annotations that `pod_metadata` can have. No dialect reads them."""
    share_annotations: tuple[str, ...] = ()
    """Those of `pod_metadata` that list the pod's shares. They are written again when the pod is resized."""
    node_annotations: tuple[str, ...] = ()
    """The annotations that `node_metadata` can have."""
    label_prefixes: tuple[str, ...] = ()
    """What the labels that `node_metadata` can have start with. An installation lets agents write no others."""
    observed_annotations: tuple[str, ...] = ()
    """The annotations of nodes that `labels_of_others` reads."""
    limits_by_quota: bool = False
    """Whether ResourceQuotas name memory and cores as this dialect does."""
    annotation_prefixes: tuple[str, ...] = ()
    """What the annotations start with by which pods request GPUs without naming a resource, misspelled ones too. They
    count in pods that name a scheduler of the dialect, or another one of `schedulers.served` other than the default
    scheduler and no GPU by a resource; admission fills in the tickets."""

    def resource_names(self, config: Config) -> ResourceNames:
        """The names of its resources, as configured."""
        ...

    def aliases(self, names: ResourceNames) -> Mapping[str, str]:
        """Other names that manifests have for its resources, and those in force, which admission writes."""
        return {}

    def guarded_prefixes(self, config: Config) -> tuple[str, ...]:
        """An unknown resource that starts with one of these is refused: it is a misspelled limit."""
        return ()

    def requests_by(self, key: str) -> bool:
        """Whether an annotation with this key requests GPUs."""
        return False

    def scheduler_name(self, config: Config) -> str:
        """The scheduler of its pods that name only the default one; empty leaves them alone.

        It is the one that its manifests name, while Lamina serves that name.
        """
        served = [name for name in self.schedulers if name in config.schedulers.served]
        return served[0] if served and config.schedulers.assigned else config.schedulers.assigned

    def counts_nothing(self, container: ContainerManifest, names: ResourceNames) -> bool:
        """Whether the container has a count of 0 and no other of the names: charts write that for no GPU."""
        return (
            names.count in container.requested
            and is_zero(container.requested[names.count])
            and not container.requests_any(name for name in names.all if name != names.count)
        )

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest | None:
        """What the pod requests of GPUs; None where no grant is needed. Raises BadInput with one sentence.

        The answer is the same before and after admission has filled in the defaults.
        """
        ...

    def fill_defaults(self, pod: PodManifest, request: PodRequest, names: ResourceNames) -> Iterator[PatchOperation]:
        """What admission adds to a new pod, in the order in which it can be applied."""
        yield from fill_tickets(pod, request, names)

    def has_defaults(self, container: ContainerManifest, names: ResourceNames) -> bool:
        """Whether admission has filled in what kubelet needs to give the container its share."""
        return names.ticket in container.requested

    def fill_template(self, containers: Sequence[ContainerManifest], names: ResourceNames) -> Iterator[PatchOperation]:
        """What admission changes in the pod template of a workload. Raises BadInput."""
        return iter(())

    def template_condition(self, amounts: str, names: ResourceNames) -> str:
        """CEL: whether `fill_template` has something to do for the limits or requests `amounts`; empty for never."""
        return ""

    def with_size(
        self, pod: PodManifest, container: ContainerManifest, size: WantedSize, names: ResourceNames
    ) -> Iterator[PatchOperation]:
        """What has to change in a pod template so that the container requests this size. Raises BadInput."""
        yield from write_amounts(container, size, names)

    def pod_metadata(self, pod: BoundPod) -> Metadata:
        """What its bound pods carry."""
        return Metadata()

    def node_metadata(self, node: NodeFacts) -> Metadata:
        """What nodes carry, if the configuration does not leave it out."""
        return Metadata()

    def owns_label(self, key: str) -> bool:
        """Whether a label of a node is one that `node_metadata` can have, so that it is removed where it has it not."""
        return False

    def labels_of_others(self, annotations: Mapping[str, str]) -> frozenset[str]:
        """Labels that another program writes on the node, as its annotations say; Lamina leaves them alone."""
        return frozenset()

    def read_node(self, node: Mapping[str, Any]) -> list[Gpu]:
        """The GPUs of a Node object according to what the dialect's own system writes there; empty where nothing is.

        Memory is 0 where the node does not say. Raises ValueError, LookupError or DecodeError for what cannot be read.
        """
        return []


def fill_tickets(pod: PodManifest, request: PodRequest, names: ResourceNames) -> Iterator[PatchOperation]:
    """Add the tickets that containers with a share do not request themselves."""
    counts = {container.container: container.count for container in request.containers}
    for container in pod.containers:
        if container.name in counts and names.ticket not in container.requested:
            yield from add_limits(container, {names.ticket: str(counts[container.name])})


def write_amounts(container: ContainerManifest, size: WantedSize, names: ResourceNames) -> Iterator[PatchOperation]:
    """Replace the amounts that the container requests by name. Raises BadInput for an amount that has no name."""
    amounts = {}
    if size.memory_mib is not None:
        units, rest = divmod(size.memory_mib, names.memory_unit_mib)
        if not names.memory or rest:
            raise BadInput(f"{container.where}: memory must be a multiple of {names.memory_unit_mib} MiB")
        amounts[names.memory] = str(units)
        if names.memory_percentage in container.requested:
            yield from remove_resource(container, names.memory_percentage)
    if size.cores is not None:
        if not names.cores:
            raise BadInput(f"{container.where}: its dialect has no name for compute, so only memory can be changed")
        amounts[names.cores] = str(size.cores)
    for name, amount in amounts.items():
        yield from add_request(container, name, amount)
    yield from add_limits(container, amounts)
