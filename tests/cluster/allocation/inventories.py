"""ResourceSlices of one node, of a random shape: with shares, counters, taints, several slices or pools.

Nodes have the label `case` with their number, by which slices of pools that are not on the node reach it.
"""

from random import Random
from typing import Any

from lamina.ports.kube import Object

GPU, NIC = "gpu.nvidia.com", "nic.example.com"
CASE = "case"
TAINT = "example.com/broken"
MODELS = ("H100 80GB", "A100 40GB", "L40S")
SLICES_OF_CARD = 4


def node_name(case: int) -> str:
    return f"node-{case}"


def device_classes() -> list[Object]:
    """Of the kinds of GPUs, of what is no GPU, of all devices, and one with configuration."""
    parameters = {"driver": GPU, "parameters": {"apiVersion": "example.com/v1", "kind": "Any"}}
    return [
        _device_class("gpu", f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'gpu'"),
        _device_class("mig", f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'mig'"),
        _device_class("nic", f"device.driver == '{NIC}'"),
        _device_class("any"),
        _device_class("shared", "device.allowMultipleAllocations"),
        _device_class("configured", f"device.driver == '{GPU}'", config=[{"opaque": parameters}]),
    ]


def _device_class(name: str, *expressions: str, **spec: Any) -> Object:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


def slices(random: Random, case: int) -> list[Object]:
    """The slices of a pool of GPUs, and sometimes of a pool of network cards."""
    made = random.choice((_plain, _shared, _shared, _partitioned, _partitioned))(random, case)
    if random.random() < 0.3:
        made += _network(random, case)
    return made


def _plain(random: Random, case: int) -> list[Object]:
    devices = [_gpu(random, number) for number in range(random.randint(1, 4))]
    if random.random() < 0.15:
        return _incomplete(random, case, devices)
    if random.random() < 0.15:
        return [*_pool(random, case, devices[:1], generation=1), *_pool(random, case, devices, generation=2)]
    return _pool(random, case, devices)


def _shared(random: Random, case: int) -> list[Object]:
    return _pool(random, case, [_shareable(random, number) for number in range(random.randint(1, 3))])


def _incomplete(random: Random, case: int, devices: list[Object]) -> list[Object]:
    """One slice is missing."""
    made = _pool(random, case, devices)
    for each in made:
        each["spec"]["pool"]["resourceSliceCount"] += 1
    return made


def _partitioned(random: Random, case: int) -> list[Object]:
    """Cards that are used whole, sometimes as shares, or in parts of one or two slices."""
    devices, sets = [], []
    for card in range(random.randint(1, 2)):
        name = f"card-{card}"
        sets.append({"name": name, "counters": {"memory": {"value": "40Gi"}, **_memory_slices(range(SLICES_OF_CARD))}})
        whole = _shareable(random, card) if random.random() < 0.5 else _gpu(random, card)
        whole |= _uses(name, "40Gi", range(SLICES_OF_CARD))
        parts = [_part(random, card, start, size) for size in (2, 1) for start in range(0, SLICES_OF_CARD, size)]
        devices += [whole, *parts] if random.random() < 0.5 else [*parts, whole]
    return _pool(random, case, devices, sets=sets)


def _part(random: Random, card: int, start: int, size: int) -> Object:
    attributes = {"type": {"string": "mig"}, "parent": {"string": f"card-{card}"}, "profile": {"string": f"{size}g"}}
    taken = range(start, start + size)
    made = {"name": f"gpu-{card}-mig-{size}g-{start}", "attributes": attributes}
    return made | _uses(f"card-{card}", f"{10 * size}Gi", taken) | _tainted(random, 0.05)


def _uses(counter_set: str, memory: str, taken: range) -> Object:
    counters = {"memory": {"value": memory}, **_memory_slices(taken)}
    return {"consumesCounters": [{"counterSet": counter_set, "counters": counters}]}


def _memory_slices(taken: range) -> Object:
    return {f"memory-slice-{number}": {"value": "1"} for number in taken}


def _gpu(random: Random, number: int) -> Object:
    attributes: Object = {
        "type": {"string": "gpu"},
        "index": {"int": number},
        "model": {"string": random.choice(MODELS)},
        "driver": {"version": random.choice(("550.54.15", "580.65.6"))},
        "ecc": {"bool": random.random() < 0.5},
        "example.com/rack": {"string": random.choice(("r1", "r2"))},
    }
    if random.random() < 0.7:
        attributes["numa"] = {"int": random.randint(0, 1)}
    capacity = {"memory": {"value": random.choice(("24Gi", "40Gi", "80Gi"))}}
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity} | _tainted(random, 0.2)


def _shareable(random: Random, number: int) -> Object:
    memory: Object = {"value": "40Gi"}
    kind = random.choice(("range", "range", "step", "values", "plain"))
    if kind == "range":
        memory["requestPolicy"] = {"default": random.choice(("40Gi", "1Gi")), "validRange": {"min": "1Gi"}}
    elif kind == "step":
        allowed = {"min": "1Gi", "max": random.choice(("40Gi", "19Gi")), "step": "3Gi"}
        memory["requestPolicy"] = {"default": random.choice(("1Gi", "10Gi")), "validRange": allowed}
    elif kind == "values":
        memory["requestPolicy"] = {"default": "5Gi", "validValues": ["5Gi", "10Gi", "20Gi"]}
    capacity = {"memory": memory}
    if random.random() < 0.7:
        allowed = {"min": "0", "max": "100", "step": "1"}
        capacity["cores"] = {"value": "100", "requestPolicy": {"default": "0", "validRange": allowed}}
    return _gpu(random, number) | {"allowMultipleAllocations": True, "capacity": capacity}


def _tainted(random: Random, share: float) -> Object:
    if random.random() >= share:
        return {}
    taint = {
        "key": TAINT,
        "value": random.choice(("yes", "")),
        "effect": random.choice(("NoSchedule", "NoExecute", "None")),
    }
    return {"taints": [taint]}


def _pool(
    random: Random, case: int, devices: list[Object], *, sets: list[Object] | None = None, generation: int = 1
) -> list[Object]:
    """The node's own pool, in one slice or in two whose names are in another order than their devices."""
    cut = random.randint(1, len(devices) - 1) if len(devices) > 1 and random.random() < 0.3 else len(devices)
    contents: list[Object] = [{"devices": part} for part in (devices[:cut], devices[cut:]) if part]
    contents += [{"sharedCounters": sets}] if sets else []
    pool = {"name": node_name(case), "generation": generation, "resourceSliceCount": len(contents)}
    letters = random.sample("abcdef", len(contents))
    return [
        {
            "metadata": {"name": f"{node_name(case)}-g{generation}-{letter}"},
            "spec": {"driver": GPU, "nodeName": node_name(case), "pool": pool, **content},
        }
        for letter, content in zip(letters, contents, strict=True)
    ]


def _network(random: Random, case: int) -> list[Object]:
    """Cards that several nodes could reach: all of them by the slice's selector, or each by its own."""
    wanted = {"key": CASE, "operator": "In", "values": [str(case)]}
    here: Object = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    devices = [
        {"name": f"nic-{number}", "attributes": {"numa": {"int": number % 2}, "index": {"int": number}}}
        for number in range(random.randint(1, 3))
    ]
    place = here
    if random.random() < 0.5:
        place = {"perDeviceNodeSelection": True}
        devices = [each | (here if random.random() < 0.7 else {"nodeName": "elsewhere"}) for each in devices]
    pool = {"name": f"nics-{case}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": NIC, "pool": pool, "devices": devices, **place}
    return [{"metadata": {"name": f"nics-{case}"}, "spec": spec}]
