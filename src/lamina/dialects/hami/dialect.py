"""HAMi's names, and how its parts make up the dialect."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lamina.core.config import Config
from lamina.core.gpus import Gpu, Mode
from lamina.core.requests import PodRequest
from lamina.dialects.choices import ChoiceAnnotations
from lamina.dialects.containers import ContainerManifest
from lamina.dialects.hami import admission, compatibility, fractions, metrics, parser
from lamina.dialects.hami.section import HamiSection
from lamina.dialects.metadata import BoundPod, Metadata, NodeFacts
from lamina.dialects.patches import PatchOperation
from lamina.dialects.protocol import Dialect, Listed, PodManifest, ResourceNames

ANNOTATIONS = ChoiceAnnotations(
    types=("nvidia.com/use-gputype",),
    excluded_types=("nvidia.com/nouse-gputype",),
    uuids=("nvidia.com/use-gpuuuid",),
    excluded_uuids=("nvidia.com/nouse-gpuuuid",),
    modes=("nvidia.com/vgpu-mode",),
    mode_values={"hami-core": Mode.QUOTA, "mig": Mode.MIG, "mps": Mode.MPS},
    node_policy=("hami.io/node-scheduler-policy",),
    gpu_policy=("hami.io/gpu-scheduler-policy",),
    numa_bind=("nvidia.com/numa-bind",),
    unsupported=("hami.io/device-scoring-weights",),
    guarded_prefixes=("nvidia.com/use-", "nvidia.com/nouse-"),
)
_CORES = ("nvidia.com/gpucores", "nvidia.com/cores")
"""4paradigm's list of options has the second name, and its manifests have the first."""


class HamiDialect(Dialect):
    """The dialect of HAMi's NVIDIA devices."""

    name = "hami"
    section = HamiSection
    schedulers = ("hami-scheduler", "4pd-scheduler")
    listed_annotations = Listed("hami")
    listed_resources = Listed("hami", by_default=False)
    listed_metrics = Listed("hami")
    node_metrics = metrics.NODE
    cluster_metrics = metrics.CLUSTER
    choice_annotations = ANNOTATIONS
    pod_annotations = compatibility.KEYS
    share_annotations = ("hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated")
    node_annotations = (compatibility.REGISTER,)
    limits_by_quota = True

    def resource_names(self, config: Config) -> ResourceNames:
        section = config.section(HamiSection)
        names = section.resources
        return ResourceNames(
            ticket=names.count,
            ticket_prefix="ticket",
            count=names.count,
            memory=names.memory,
            memory_unit_mib=section.memory_unit_mib,
            memory_percentage=names.memory_percentage,
            cores=names.cores,
            priority=names.priority,
        )

    def aliases(self, names: ResourceNames) -> Mapping[str, str]:
        return {other: names.cores for other in _CORES if names.cores in _CORES and other != names.cores}

    def guarded_prefixes(self, config: Config) -> tuple[str, ...]:
        return tuple({f"{name.partition('/')[0]}/": None for name in self.resource_names(config).all})

    def scheduler_name(self, config: Config) -> str:
        return config.schedulers.assigned

    def counts_nothing(self, container: ContainerManifest, names: ResourceNames) -> bool:
        return fractions.PERCENTAGE not in container.requested and super().counts_nothing(container, names)

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest:
        return parser.parse(pod, names)

    def fill_defaults(self, pod: PodManifest, request: PodRequest, names: ResourceNames) -> Iterator[PatchOperation]:
        return admission.fill_defaults(pod, request, names)

    def has_defaults(self, container: ContainerManifest, names: ResourceNames) -> bool:
        return names.ticket in container.requested and fractions.PERCENTAGE not in container.requested

    def fill_template(self, containers: Sequence[ContainerManifest], names: ResourceNames) -> Iterator[PatchOperation]:
        return fractions.fill_template(containers, names)

    def template_condition(self, amounts: str, names: ResourceNames) -> str:
        return fractions.template_condition(amounts, names)

    def pod_metadata(self, pod: BoundPod) -> Metadata:
        return compatibility.pod_metadata(pod)

    def node_metadata(self, node: NodeFacts) -> Metadata:
        if not any(gpu.by_grant for gpu in node.inventory.gpus):
            return Metadata()
        return Metadata(annotations={compatibility.REGISTER: compatibility.write_register(node.inventory)})

    def read_node(self, node: Mapping[str, Any]) -> list[Gpu]:
        text = (node["metadata"].get("annotations") or {}).get(compatibility.REGISTER)
        return list(compatibility.read_register(text)) if text else []
