"""Pods that request native devices: whether nodes have enough of them, counted as kube-scheduler counts."""

from collections.abc import Iterable, Iterator, Mapping

from lamina.core.gpus import Inventory
from lamina.core.mig_devices import profile_resource, strategy_hint
from lamina.core.pod_status import is_over
from lamina.core.quantities import parse_quantity
from lamina.dialects.containers import read_containers
from lamina.dialects.native_devices import native_resources
from lamina.placement import Cause, Miss, Numbers
from lamina.ports.kube import Object


def counted(pod: Object) -> dict[str, int]:
    """What the pod requests of each native resource: the sum over containers, or the largest init container."""
    amounts: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for container in read_containers(pod):
        for name in native_resources(container.requested):
            amount = parse_quantity(container.requested[name], where=name).whole or 0
            if container.init and not container.sidecar:
                peaks[name] = max(peaks.get(name, 0), amount)
            else:
                amounts[name] = amounts.get(name, 0) + amount
    totals = {name: max(amounts.get(name, 0), peaks.get(name, 0)) for name in amounts | peaks}
    return {name: total for name, total in totals.items() if total}


def forbidden(reason: str) -> Miss:
    """What a node lacks that may not give the pod its devices."""
    return Miss(reason, Cause.COUNT, True, (0, 0, 0.0))


def missing(pod: Object, inventory: Inventory, pods: Iterable[Object]) -> Miss | None:
    """What the node with this inventory lacks for the pod, None if it has enough. `pods` are all of the cluster."""
    offered = {each.resource: each.count for each in inventory.native_resources}
    taken: dict[str, int] = {}
    for other in pods:
        ended = is_over(other)
        if other["spec"].get("nodeName") == inventory.node and not ended:
            for name, amount in counted(other).items():
                taken[name] = taken.get(name, 0) + amount
    for name, amount in sorted(counted(pod).items()):
        there = offered.get(name, 0)
        free = max(0, there - taken.get(name, 0))
        if amount > there:
            reason, numbers = f"needs {amount} {name}; this node offers {there}", Numbers(amount, there, name)
            return Miss(reason, Cause.COUNT, True, (0, 0, 0.0), numbers)
        if amount > free:
            reason = (
                f"all {there} {name} are allocated" if not free else f"needs {amount} {name}; {free} of {there} free"
            )
            return Miss(reason, Cause.SLOTS, False, (0, 0, 0.0), Numbers(amount, free, name))
    return None


def native_lines(pod: Object, misses: Mapping[str, Miss | None], inventories: Iterable[Inventory]) -> Iterator[str]:
    """A line for each node that offers the native devices of the pod and has too few, and for each that has such MIG
    devices and does not offer them. `misses` are by node."""
    for node in sorted(misses):
        if miss := misses[node]:
            yield f"  {node}: {miss.reason}"
    wanted = counted(pod)
    for inventory in sorted(inventories, key=lambda each: each.node):
        for devices in inventory.mig_devices:
            resource = profile_resource(devices.profile)
            if resource in wanted and devices.resource != resource:
                has = f"  {inventory.node} has {devices.count} such devices"
                if devices.resource:
                    yield f"{has}, but offers them as {devices.resource}; request that"
                else:
                    yield f"{has}, but {devices.reason}{strategy_hint(devices)}"
