"""The toy dialect: names, parsing, defaults, and what its tools would expect."""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.gpus import Gpu
from lamina.core.grants import MAX_GPUS, ComputePolicy
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.choices import ChoiceAnnotations
from lamina.dialects.containers import ContainerManifest, check_not_privileged, read_integer
from lamina.dialects.metadata import BoundPod, Metadata, NodeFacts
from lamina.dialects.metrics import ClusterMetrics, MetricTable, NodeMetrics, gauge
from lamina.dialects.patches import PatchOperation
from lamina.dialects.protocol import Dialect, Listed, PodManifest, ResourceNames, fill_tickets
from lamina.dialects.samples import GpuSample, GrantedShare
from tests.dialects.toy.section import ToySection

PLACED, DEVICES = "toy.example/placed", "toy.example/devices"
COUNT, CHANGED = "toy.example/count", "toy.example/changed"
OTHERS = "toy.example/labels-of-others"
HOLDER = "toy.example/one-gpu-for"


NODE = NodeMetrics(
    gpus=(
        MetricTable[GpuSample](
            ("uuid",), lambda s: (s.uuid,), (gauge("toy_used_bytes", "Memory in use.", lambda s: s.reading.used_bytes),)
        ),
    )
)
CLUSTER = ClusterMetrics(
    shares=(
        MetricTable[GrantedShare](
            ("pod",),
            lambda g: (g.pod,),
            (gauge("toy_granted_gib", "Memory granted.", lambda g: g.share.memory_mib / 1024),),
        ),
    )
)


class ToyDialect(Dialect):
    """Every method that a dialect can have."""

    name = "toy"
    section = ToySection
    schedulers = ("toy-scheduler",)
    listed_annotations = Listed("toy")
    listed_resources = Listed("toy")
    listed_metrics = Listed("toys")
    node_metrics = NODE
    cluster_metrics = CLUSTER
    choice_annotations = ChoiceAnnotations(uuids=("toy.example/use-gpu",), guarded_prefixes=("toy.example/use-",))
    pod_annotations = (PLACED,)
    share_annotations = (PLACED,)
    node_annotations = (DEVICES,)
    label_prefixes = ("toy.example/",)
    annotation_prefixes = (HOLDER,)
    observed_annotations = (OTHERS,)

    def resource_names(self, config: Config) -> ResourceNames:
        section = config.section(ToySection)
        return ResourceNames(
            ticket=section.resources.count,
            ticket_prefix="toy",
            count=section.resources.count,
            memory=section.resources.memory,
            memory_unit_mib=section.memory_unit_mib,
        )

    def aliases(self, names: ResourceNames) -> Mapping[str, str]:
        return {"toy.example/gibibytes": names.memory}

    def guarded_prefixes(self, config: Config) -> tuple[str, ...]:
        return ("toy.example/",)

    def requests_by(self, key: str) -> bool:
        return key == HOLDER

    def scheduler_name(self, config: Config) -> str:
        return "lamina-scheduler"

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest:
        holder = pod.annotations.get(HOLDER)
        requesting = [each for each in pod.containers if each.requests_any(names.all) or each.name == holder]
        choices, section = pod.read_choices(), pod.config.section(ToySection)
        return PodRequest(
            dialect=self.name,
            containers=tuple(self._request(container, names, section) for container in requesting),
            selector=choices.selector,
            compute_policy=ComputePolicy(pod.config.sharing.compute_policy),
        )

    def fill_defaults(self, pod: PodManifest, request: PodRequest, names: ResourceNames) -> Iterator[PatchOperation]:
        yield from fill_tickets(pod, request, names)
        yield PatchOperation("/spec/priorityClassName", "toys")

    def pod_metadata(self, pod: BoundPod) -> Metadata:
        gpus = [share.gpu for shares in pod.shares_by_container() for share in shares]
        return Metadata(annotations={PLACED: ",".join(gpus)}, labels={"toy.example/node": pod.grant.node})

    def node_metadata(self, node: NodeFacts) -> Metadata:
        return Metadata(
            labels={COUNT: str(len(node.gpus))},
            annotations={DEVICES: ",".join(gpu.uuid for gpu in node.inventory.gpus)},
            timestamps=frozenset({CHANGED}),
        )

    def owns_label(self, key: str) -> bool:
        return key in (COUNT, CHANGED)

    def labels_of_others(self, annotations: Mapping[str, str]) -> frozenset[str]:
        return frozenset(annotations.get(OTHERS, "").split())

    def read_node(self, node: Mapping[str, Any]) -> list[Gpu]:
        uuids = (node["metadata"].get("annotations") or {}).get(DEVICES, "").split(",")
        return [
            Gpu(uuid=uuid, index=index, model="T4", memory_mib=0, capacity_mib=0)
            for index, uuid in enumerate(filter(None, uuids))
        ]

    def _request(self, container: ContainerManifest, names: ResourceNames, section: ToySection) -> ContainerRequest:
        check_not_privileged(container)
        gib = read_integer(container, names.memory, 1, 1024)
        return ContainerRequest(
            container=container.name,
            count=read_integer(container, names.count, 1, MAX_GPUS) or 1,
            memory_mib=None if gib is None else gib * names.memory_unit_mib,
            memory_percent=(50 if section.halves else 100) if gib is None else None,
            init=container.init,
            sidecar=container.sidecar,
        )
