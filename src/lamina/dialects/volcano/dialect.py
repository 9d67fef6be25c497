"""Volcano's names, and how its parts make up the dialect."""

from collections.abc import Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.gpus import Gpu, Mode
from lamina.core.requests import PodRequest
from lamina.dialects.choices import ChoiceAnnotations
from lamina.dialects.metadata import BoundPod, Metadata, NodeFacts
from lamina.dialects.protocol import Dialect, Listed, PodManifest, ResourceNames
from lamina.dialects.volcano import compatibility, parser
from lamina.dialects.volcano.section import VolcanoSection

SCHEDULE_POLICY = "deviceshare.SchedulePolicy"
"""Volcano's one name for the policy over nodes and over GPUs, in annotations and in its scheduler's configuration."""
ANNOTATIONS = ChoiceAnnotations(
    uuids=("volcano.sh/vgpu-use-gpuuuid",),
    excluded_uuids=("volcano.sh/vgpu-nouse-gpuuuid",),
    modes=("volcano.sh/vgpu-mode",),
    mode_values={"hami-core": Mode.QUOTA, "mig": Mode.MIG, "mps": Mode.MPS},
    node_policy=(SCHEDULE_POLICY,),
    gpu_policy=(SCHEDULE_POLICY,),
    guarded_prefixes=("volcano.sh/vgpu-use-", "volcano.sh/vgpu-nouse-"),
)


class VolcanoDialect(Dialect):
    """The dialect of Volcano's device share plugin."""

    name = "volcano"
    section = VolcanoSection
    schedulers = ("volcano",)
    listed_annotations = Listed("volcano")
    listed_resources = Listed("volcano")
    listed_metrics = Listed("volcano")
    cluster_metrics = compatibility.CLUSTER
    choice_annotations = ANNOTATIONS
    pod_annotations = compatibility.KEYS
    share_annotations = ("volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate")
    node_annotations = (compatibility.REGISTER,)

    def resource_names(self, config: Config) -> ResourceNames:
        section = config.section(VolcanoSection)
        names = section.resources
        return ResourceNames(
            ticket=names.count,
            ticket_prefix="vgpu",
            count=names.count,
            memory=names.memory,
            memory_unit_mib=section.memory_unit_mib,
            memory_percentage=names.memory_percentage,
            cores=names.cores,
        )

    def guarded_prefixes(self, config: Config) -> tuple[str, ...]:
        return ("volcano.sh/vgpu-",)

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest:
        return parser.parse(pod, names)

    def pod_metadata(self, pod: BoundPod) -> Metadata:
        return compatibility.pod_metadata(pod)

    def node_metadata(self, node: NodeFacts) -> Metadata:
        if not any(gpu.by_grant for gpu in node.inventory.gpus):
            return Metadata()
        return Metadata(annotations={compatibility.REGISTER: compatibility.write_register(node.inventory)})

    def read_node(self, node: Mapping[str, Any]) -> list[Gpu]:
        text = (node["metadata"].get("annotations") or {}).get(compatibility.REGISTER)
        return list(compatibility.read_register(text)) if text else []
