"""NVIDIA's names. Where another dialect has `nvidia.com/gpu`, as HAMi does by default, that one reads it."""

from collections.abc import Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.gpus import Gpu
from lamina.core.sharing import GPU
from lamina.dialects.metadata import Metadata, NodeFacts
from lamina.dialects.nvidia import feature_labels, metrics, node_gpus
from lamina.dialects.protocol import Dialect, Listed, PodManifest, ResourceNames

NAMES = ResourceNames(count=GPU)


class NvidiaDialect(Dialect):
    """The dialect of NVIDIA's device plugin."""

    name = "nvidia"
    listed_metrics = Listed("dcgm")
    node_metrics = metrics.NODE
    label_prefixes = (feature_labels.PREFIX,)
    observed_annotations = (feature_labels.NFD_ANNOTATION,)

    def resource_names(self, config: Config) -> ResourceNames:
        return NAMES

    def guarded_prefixes(self, config: Config) -> tuple[str, ...]:
        return ("nvidia.com/",)

    def parse(self, pod: PodManifest, names: ResourceNames) -> None:
        return None

    def node_metadata(self, node: NodeFacts) -> Metadata:
        labels = feature_labels.labels(node)
        stamped = bool(labels) and node.timestamps
        return Metadata(labels=labels, timestamps=frozenset({feature_labels.TIMESTAMP} if stamped else ()))

    def owns_label(self, key: str) -> bool:
        return feature_labels.is_feature_label(key)

    def labels_of_others(self, annotations: Mapping[str, str]) -> frozenset[str]:
        return feature_labels.labels_of_discovery(annotations)

    def read_node(self, node: Mapping[str, Any]) -> list[Gpu]:
        return list(node_gpus.read_node(node))
