"""Memory and compute of a node in sum, as extended resources, for people and tools that look at allocatable.

No decision is made with them: our extender manages them and kube-scheduler ignores them. Kubelet does compare them
when it admits a pod, and fails running pods over them when it restarts; so they tell what the node has, and do not
shrink while a GPU is sick or cordoned.
"""

from collections.abc import Mapping

from lamina.dialects.config import Config
from lamina.model.gpus import Inventory

CCE_CORES = "volcano.sh/gpu-core.percentage"


def amounts(inventory: Inventory, config: Config) -> dict[str, int]:
    """The amounts of the vocabularies that the configuration names; none where no GPU is shared by grants."""
    gpus = [gpu for gpu in inventory.gpus if not gpu.plain]
    memory, cores = sum(gpu.capacity_mib for gpu in gpus), sum(gpu.cores_capacity for gpu in gpus)
    if not gpus:
        return {}
    return {
        name: memory // factor if is_memory else cores
        for vocabulary in config.node.amounts
        for name, (is_memory, factor) in _named(config)[vocabulary].items()
    }


def names(config: Config) -> frozenset[str]:
    """Every amount that is kept here, wanted now or not. HAMi's are others' where they are not asked for."""
    kept = {"volcano", "cce", *config.node.amounts}
    return frozenset(name for vocabulary in kept for name in _named(config)[vocabulary])


def _named(config: Config) -> Mapping[str, Mapping[str, tuple[bool, int]]]:
    """By vocabulary: each resource, whether it is memory, and the MiB of one unit of that."""
    return {
        "hami": {
            config.hami.resource_memory_name: (True, config.hami.memory_factor),
            config.hami.resource_core_name: (False, 1),
        },
        "volcano": {
            config.volcano.resource_memory_name: (True, config.volcano.gpu_memory_factor),
            config.volcano.resource_core_name: (False, 1),
        },
        "cce": {CCE_CORES: (False, 1)},
    }
