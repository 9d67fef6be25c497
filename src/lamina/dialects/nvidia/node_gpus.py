"""What NVIDIA's device plugin and GPU feature discovery say about the GPUs of a node."""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.model.gpus import Gpu
from lamina.model.sharing import GPU


def read_node(node: Mapping[str, Any]) -> Iterator[Gpu]:
    """The GPUs by the plugin's count of GPUs or replicas and the feature discovery's labels."""
    status, labels = node.get("status") or {}, node["metadata"].get("labels") or {}
    offered = int((status.get("allocatable") or status.get("capacity") or {}).get(GPU, 0))
    replicas = max(1, int(labels.get(f"{GPU}.replicas") or 1))
    count = int(labels.get(f"{GPU}.count") or -(-offered // replicas))
    memory = int(labels.get(f"{GPU}.memory") or 0)
    for index in range(count):
        yield Gpu(
            uuid=f"{node['metadata']['name']}-{index}",
            index=index,
            model=str(labels.get(f"{GPU}.product") or "GPU").removesuffix("-SHARED"),
            memory_mib=memory,
            capacity_mib=memory,
        )
