"""Resource slices, classes and claims for tests of device allocation, in the shape that NVIDIA's driver publishes."""

import itertools
from collections.abc import Iterable
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.scheduler.devices.allocator import Allocator

DRIVER = "gpu.nvidia.com"
GIB = 2**30


def gpu(name: str, *, memory_gib: int = 80, shareable: bool = False, counters: bool = False, **more: Any) -> Object:
    """One GPU. A shareable one has memory and cores of which claims take parts; `counters` takes all slices."""
    memory: Object = {"value": f"{memory_gib}Gi"}
    capacity: Object = {"memory": memory}
    if shareable:
        policy = {"min": "1Mi", "max": f"{memory_gib}Gi", "step": "1Mi"}
        memory["requestPolicy"] = {"default": f"{memory_gib}Gi", "validRange": policy}
        cores = {"default": "0", "validRange": {"min": "0", "max": "100", "step": "1"}}
        capacity["cores"] = {"value": "100", "requestPolicy": cores}
        more["allowMultipleAllocations"] = True
    if counters:
        more["consumesCounters"] = [uses(f"{name}-counter-set", *range(4))]
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{name}"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "driverVersion": {"version": "580.65.6"},
        "index": {"int": int(name.rpartition("-")[2])},
        "example.com/rack": {"string": "r1"},
        **more.pop("attributes", {}),
    }
    return {"name": name, "attributes": attributes, "capacity": capacity, **more}


def mig(name: str, parent: str, *slices: int) -> Object:
    attributes = {
        "type": {"string": "mig"},
        "parentUUID": {"string": f"GPU-{parent}"},
        "profile": {"string": f"{len(slices)}g"},
    }
    counters = [uses(f"{parent}-counter-set", *slices)]
    return {"name": name, "attributes": attributes, "capacity": {}, "consumesCounters": counters}


def uses(counter_set: str, *slices: int) -> Object:
    return {"counterSet": counter_set, "counters": {f"memory-slice-{at}": {"value": "1"} for at in slices}}


def counter_set(parent: str) -> Object:
    return {"name": f"{parent}-counter-set", "counters": {f"memory-slice-{at}": {"value": "1"} for at in range(4)}}


def slices(*devices: Object, sets: Iterable[Object] = (), pool: str = "node-0", generation: int = 1) -> list[Object]:
    """The slices of one node: one with devices, one with counter sets if there are any."""
    sets = list(sets)
    common = {"driver": DRIVER, "nodeName": pool}
    spec_pool = {"name": pool, "generation": generation, "resourceSliceCount": 2 if sets else 1}
    made = [{"metadata": {"name": f"{pool}-a"}, "spec": {**common, "pool": spec_pool, "devices": list(devices)}}]
    if sets:
        made.append({"metadata": {"name": f"{pool}-b"}, "spec": {**common, "pool": spec_pool, "sharedCounters": sets}})
    return made


def device_class(name: str, kind: str, **spec: Any) -> Object:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}], **spec}}


CLASSES = (device_class("gpu.nvidia.com", "gpu"), device_class("mig.nvidia.com", "mig"))


def request(name: str = "gpu", cls: str = "gpu.nvidia.com", *selectors: str, **more: Any) -> Object:
    wanted = {"deviceClassName": cls, "selectors": [{"cel": {"expression": entry}} for entry in selectors], **more}
    return {"name": name, "exactly": wanted}


def capacity(**amounts: str) -> Object:
    return {"requests": amounts}


def claim(name: str, *requests: Object, **devices: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": list(requests), **devices}}}


def node(name: str = "node-0", **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


class AllocatedDevices:
    """Allocates claims one after the other, each with the view that the ones before left."""

    def __init__(self, found: list[Object], classes: Iterable[Object] = CLASSES) -> None:
        self.slices = found
        self.classes = list(classes)
        self.allocated: list[Object] = []
        self._ids = itertools.count(1)

    def allocate(self, *claims: Object, on: str = "node-0") -> list[Object] | None:
        """The results of all claims together, one list; None if they do not fit."""
        allocator = Allocator(self.slices, self.classes, self.allocated, lambda: f"share-{next(self._ids)}")
        found = allocator.allocate(node(on), claims)
        if found is None:
            return None
        for given, allocation in zip(claims, found, strict=True):
            self.allocated.append({**given, "status": {"allocation": allocation}})
        return [result for allocation in found for result in allocation["devices"]["results"]]

    def devices(self, *claims: Object, on: str = "node-0") -> list[str] | None:
        found = self.allocate(*claims, on=on)
        return None if found is None else [result["device"] for result in found]

    def free(self, name: str) -> None:
        self.allocated = [entry for entry in self.allocated if entry["metadata"]["name"] != name]
