"""Capacities of the resources that pods request next to tickets, so that a node has every name that a pod can have.

Lamina does not decide with them, and kube-scheduler's filters ignore them, since the extender manages them. But

- kube-scheduler from 1.32 on retries a pod that found no node when a node changes, and only if that node could hold all
  that the pod requests, including resources that an extender manages;
- kube-scheduler from 1.36 on refuses a node that does not list one of a pod's resources, if a DeviceClass could serve
  another one;
- kubelet compares the node's capacities with what its pods request, when it admits a pod and when it restarts. It skips
  names that the node does not have, but before 1.31 not those of init containers.

So every name has an amount. Sums of memory and compute are for people and tools that read allocatable. They say what
the node has, and do not shrink while a GPU is unhealthy or cordoned. All other names have plenty, so that kubelet
refuses nothing that was granted, however GPUs or settings of the node have changed since.
"""

from collections.abc import Mapping

from lamina.configuration import DEFAULT, Config
from lamina.core.gpus import Inventory
from lamina.dialects import resource_names
from lamina.dialects.registry import names_with_sums

PLENTY = 2**31 - 1
"""More than the pods of a node can hold of anything, in any unit."""
_UNITS = ("", "k", "M", "G", "T", "P", "E")


def desired_amounts(inventory: Inventory, config: Config) -> dict[str, int]:
    """The amount of each resource; none if no GPU is shared by grants."""
    gpus = [gpu for gpu in inventory.gpus if not gpu.native_resource]
    memory, cores = sum(gpu.capacity_mib for gpu in gpus), sum(gpu.cores_capacity for gpu in gpus)
    if not gpus:
        return {}
    sums = dict.fromkeys(_names(config), PLENTY)
    for names in names_with_sums(config, config):
        sums |= {names.memory: memory // names.memory_unit_mib, names.cores: cores}
    return {name: amount for name, amount in sums.items() if name in _names(config)}


def maintained_resources(config: Config, present: Mapping[str, str]) -> frozenset[str]:
    """The resources of a node with the amounts `present` that Lamina maintains, whether or not they are desired now.

    A resource that has never been a sum is Lamina's only if the node has plenty or none of it. Any other amount was
    written by another system, and stays.
    """
    earlier = (*names_with_sums(DEFAULT, config), *names_with_sums(config, config))
    ours = {name for names in earlier for name in (names.memory, names.cores)}
    plenty = (str(PLENTY), "0")
    return frozenset(name for name in _names(config) if name in ours or present.get(name) in plenty)


def format_quantity(amount: int) -> str:
    """The amount in the API server's canonical form: 2000 is 2k."""
    power = 0
    while amount and amount % 1000 == 0:
        amount, power = amount // 1000, power + 1
    return f"{amount}{_UNITS[power]}"


def _names(config: Config) -> frozenset[str]:
    """Every resource that is not a ticket."""
    return frozenset(name for names in resource_names(config) for name in names.ignored_by_scheduler)
