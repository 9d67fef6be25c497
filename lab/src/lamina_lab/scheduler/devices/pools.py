"""Pools of devices: the newest generation of each, complete or not, as one node sees it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct, structs

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.device_taints import added_taints
from lamina_lab.kubernetes.node_affinity import term_holds
from lamina_lab.kubernetes.resource_slices import newest_slices
from lamina_lab.scheduler.devices.model import PoolDevice, counters, device


class Pool(Struct, frozen=True):
    """A pool of one driver. Devices are in the order in which they are tried: by slice name, then as listed.

    `places` are the nodeName, nodeSelector or allNodes of its slices and devices. `problem` is why nothing is allocated
    from it: slices are missing, or they contradict each other.
    """

    driver: str
    name: str
    places: tuple[Mapping[str, Any], ...]
    devices: tuple[PoolDevice, ...] = ()
    counter_sets: Mapping[str, Mapping[str, Fraction]] = {}
    problem: str = ""

    @property
    def has_conditions(self) -> bool:
        return any(device.conditions for device in self.devices)


def gather(slices: Iterable[Object], rules: Iterable[Object] = ()) -> list[Pool]:
    """All pools by driver and name, with the taints that rules add to their devices.

    Those with binding conditions are last, as kube-scheduler prefers the others.
    """
    newest = newest_slices(slices)
    pools = [_pool(driver, name, sorted(found, key=objects.name)) for (driver, name), found in sorted(newest.items())]
    given = list(rules)
    pools = [_tainted(pool, given) for pool in pools] if given else pools
    return sorted(pools, key=lambda pool: pool.has_conditions)


def _tainted(pool: Pool, rules: Sequence[Object]) -> Pool:
    devices = tuple(
        structs.replace(device, taints=(*device.taints, *added_taints(rules, device.id._asdict())))
        for device in pool.devices
    )
    return structs.replace(pool, devices=devices)


def reaches(place: Mapping[str, Any], node: Object) -> bool:
    """Whether what a slice or device says of nodes includes this one."""
    if place.get("nodeName"):
        return bool(place["nodeName"] == objects.name(node))
    if place.get("allNodes"):
        return True
    terms = (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return any(term_holds(term, node) for term in terms)


def _pool(driver: str, name: str, slices: Sequence[Object]) -> Pool:
    specs = [objects.spec(entry) for entry in slices]
    wanted = int(specs[0]["pool"].get("resourceSliceCount") or 0)
    places = tuple(place for spec in specs for place in _places(spec))
    if len(slices) != wanted:
        return Pool(driver, name, places, problem=f"has {len(slices)} of {wanted} slices")
    devices = tuple(device(entry, spec) for spec in specs for entry in spec.get("devices") or ())
    sets = [(entry["name"], counters(entry)) for spec in specs for entry in spec.get("sharedCounters") or ()]
    return Pool(driver, name, places, devices, dict(sets), _contradiction(devices, sets))


def _places(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if spec.get("sharedCounters"):
        return ()
    return spec.get("devices") or () if spec.get("perDeviceNodeSelection") else (spec,)


def _contradiction(devices: Sequence[PoolDevice], sets: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    for kind, names in (("device", (found.id.device for found in devices)), ("counter set", (n for n, _ in sets))):
        doubled = [name for name, count in Counter(names).items() if count > 1]
        if doubled:
            return f"has more than one {kind} {doubled[0]}"
    known = dict(sets)
    for found in devices:
        for name, amounts in found.counters:
            if name not in known:
                return f"lacks the counter set {name}"
            if missing := amounts.keys() - known[name].keys():
                return f"lacks the counter {min(missing)} in {name}"
    return ""
