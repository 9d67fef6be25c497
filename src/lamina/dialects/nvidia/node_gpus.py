"""What NVIDIA's device plugin and GPU feature discovery say about the GPUs of a node."""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.core.gpus import Gpu
from lamina.core.kube_quantity import parse_quantity
from lamina.core.sharing import GPU
from lamina.errors import BadInput


def read_node(node: Mapping[str, Any]) -> Iterator[Gpu]:
    """The GPUs by the plugin's count of GPUs or replicas and the feature discovery's labels."""
    status, labels = node.get("status") or {}, node["metadata"].get("labels") or {}
    offered = _offered(status.get("allocatable") or status.get("capacity") or {})
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


def _offered(amounts: Mapping[str, Any]) -> int:
    """How many devices the node offers. Raises BadInput for what is not a whole number."""
    count = parse_quantity(amounts.get(GPU, 0), where=f"the amount of {GPU}").whole
    if count is None:
        raise BadInput(f"the amount of {GPU} must be a whole number, got {amounts[GPU]!r}")
    return count
