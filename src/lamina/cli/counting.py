"""Pods that only count what nodes give out without grants: whether kube-scheduler finds enough of it, as it counts."""

from collections.abc import Iterable

from lamina.dialects.containers import containers_of
from lamina.dialects.nvidia.resources import countable
from lamina.model.gpus import Inventory
from lamina.model.kube_quantity import parse_quantity
from lamina.placement import Cause, Miss
from lamina.ports.kube import Object

_ENDED = ("Succeeded", "Failed")


def counted(pod: Object) -> dict[str, int]:
    """How many of each resource of NVIDIA's plugin the pod asks: the sum of containers, or the most of an init one."""
    amounts: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for container in containers_of(pod):
        for name in countable(container.asked):
            amount = parse_quantity(container.asked[name], where=name).whole or 0
            if container.init and not container.sidecar:
                peaks[name] = max(peaks.get(name, 0), amount)
            else:
                amounts[name] = amounts.get(name, 0) + amount
    return {name: max(amounts.get(name, 0), peaks.get(name, 0)) for name in amounts | peaks}


def missing(pod: Object, inventory: Inventory, pods: Iterable[Object]) -> Miss | None:
    """What the node with this inventory lacks of what the pod counts, None where it has enough. `pods` are all."""
    offered = {each.resource: each.count for each in inventory.plain}
    taken: dict[str, int] = {}
    for other in pods:
        ended = (other.get("status") or {}).get("phase") in _ENDED
        if other["spec"].get("nodeName") == inventory.node and not ended:
            for name, amount in counted(other).items():
                taken[name] = taken.get(name, 0) + amount
    for name, amount in sorted(counted(pod).items()):
        there = offered.get(name, 0)
        free = max(0, there - taken.get(name, 0))
        if amount > there:
            return Miss(f"needs {amount} {name}; this node offers {there}", Cause.COUNT, True, (0, 0, 0.0))
        if amount > free:
            reason = (
                f"all {there} {name} are taken" if not free else f"needs {amount} {name}; {free} of {there} are free"
            )
            return Miss(reason, Cause.SLOTS, False, (0, 0, 0.0))
    return None
