"""What a node has of the resources that pods name beside tickets, so that Kubernetes finds all of a pod's names there.

We decide nothing with them, and kube-scheduler's filters ignore them, since our extender manages them. But

- kube-scheduler from 1.32 on looks again at a pod that found no node when a node changes, and only if that node
  could hold all that the pod names: those that an extender manages too;
- kubelet compares names that the node has with what its pods ask, when it admits a pod and when it restarts; names that
  the node lacks it passes over, but before 1.31 not those of init containers.

So every name has an amount. Sums of memory and compute are for people and tools that look at allocatable; they tell
what the node has, and do not shrink while a GPU is sick or cordoned. All other names have plenty, so that kubelet
refuses nothing that was granted, whatever GPUs or settings became of the node since.
"""

from collections.abc import Mapping

from lamina.dialects.config import Config
from lamina.dialects.vocabularies import CCE, vocabularies
from lamina.model.gpus import Inventory

PLENTY = 2**31 - 1
"""More than the pods of a node can have been granted of anything, in any unit."""
_UNITS = ("", "k", "M", "G", "T", "P", "E")


def amounts(inventory: Inventory, config: Config) -> dict[str, int]:
    """The amount of each name; none where no GPU is shared by grants."""
    gpus = [gpu for gpu in inventory.gpus if not gpu.plain]
    memory, cores = sum(gpu.capacity_mib for gpu in gpus), sum(gpu.cores_capacity for gpu in gpus)
    if not gpus:
        return {}
    sums = {
        name: memory // factor if is_memory else cores
        for vocabulary in config.node.amounts
        for name, (is_memory, factor) in _summed(config)[vocabulary].items()
    }
    return dict.fromkeys(_names(config), PLENTY) | sums


def kept(config: Config, there: Mapping[str, str]) -> frozenset[str]:
    """Of a node that has the amounts `there`: those that are kept here, wanted now or not.

    A name whose sum is not asked for is ours where there is plenty of it, and whoever wrote another amount keeps it.
    """
    summed = {"volcano", "cce", *config.node.amounts}
    ours = {name for vocabulary in summed for name in _summed(config)[vocabulary]}
    return frozenset(ours | {name for name in _names(config) if there.get(name) in (str(PLENTY), "0")})


def spelled(amount: int) -> str:
    """The amount as the API server writes it, whatever it was told: 2000 is 2k."""
    power = 0
    while amount and amount % 1000 == 0:
        amount, power = amount // 1000, power + 1
    return f"{amount}{_UNITS[power]}"


def _names(config: Config) -> frozenset[str]:
    """Every name that is no ticket."""
    return frozenset(name for each in vocabularies(config) for name in each.ignored_by_scheduler)


def _summed(config: Config) -> Mapping[str, Mapping[str, tuple[bool, int]]]:
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
        "cce": {CCE.cores: (False, 1)},
    }
