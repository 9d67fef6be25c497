"""The devices that a node offers: GPUs, of which claims take parts of the memory and cores, and MIG devices.

MIG devices of a GPU that may be partitioned on demand are offered by their places, whether or not they exist.

Attributes have the names of NVIDIA's driver, those that it dropped included, because an expression that names a missing
attribute ends the allocation on the node. HAMi's names are there too, so that a class can select its devices; MIG
devices have the one that its class reads, with another value.
"""

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from msgspec import Struct

from lamina.core.gpu_facts import GpuFacts, MigAttributes, MigInstance
from lamina.core.mig import MigProfile
from lamina.core.mig_devices import MigDevice
from lamina.core.quantities import MIB
from lamina.dra.names import CORES, DRIVER, HAMI_DRIVER, HAMI_TYPE, MEMORY, STANDARD
from lamina.dra.partitions import PartitionOptions

_ARCHITECTURES = {5: "Maxwell", 6: "Pascal", 7: "Volta", 8: "Ampere", 9: "Hopper", 10: "Blackwell", 12: "Blackwell"}
_LATER = {(7, 5): "Turing", (8, 9): "Ada Lovelace"}
_BRANDS = ("Tesla", "Quadro", "GeForce", "Titan")
_MAX_TEXT = 64
REFUSED = "lamina.dev/refused"
"""The key of the taint of a GPU that could not be prepared for a claim a short while ago."""
_XID = re.compile(r"XID (\d+)")


class DriverVersions(Struct, frozen=True):
    """The versions that the driver reports, such as 580.65.06 and (13, 0)."""

    driver: str = ""
    cuda: tuple[int, int] = (0, 0)


class OfferedGpu(Struct, frozen=True, kw_only=True):
    """A GPU that claims may get, or whose MIG devices they may get if there are any.

    `reason` says why it is unhealthy; empty while it is healthy. `options` is None for one that claims may not
    partition. `refused`: it could not be prepared for a claim a short while ago.
    """

    facts: GpuFacts
    bus_id: str = ""
    reason: str = ""
    mig: tuple[MigDevice, ...] = ()
    options: PartitionOptions | None = None
    refused: bool = False


class OfferedDevice(Struct, frozen=True, kw_only=True):
    """A device by its name in the slice. `kind` is gpu or mig; `memory_mib` is all that it has.

    A MIG device that is made on demand has a `place` of `size` memory slices, and the UUID of its GPU.
    """

    name: str
    kind: str
    uuid: str
    gpu: str
    """The UUID of its GPU."""
    index: int
    memory_mib: int
    document: Mapping[str, Any]
    """As the slice contains it."""
    place: MigInstance | None = None
    size: int = 0


def offered_devices(
    gpus: Iterable[OfferedGpu], versions: DriverVersions, used: Set[str] = frozenset(), driver: str = DRIVER
) -> list[OfferedDevice]:
    """The devices in the order in which the scheduler tries them: those of GPUs that claims have come first.

    `used` are the UUIDs of these GPUs. So shares fill a GPU before they begin another one. Then comes the last GPU, as
    grants begin with the first: both may be taken in the same moment. A GPU that others have partitioned is offered
    by its MIG devices only, and one of unknown memory not at all.
    """
    ordered = sorted(gpus, key=lambda gpu: (gpu.facts.uuid not in used, -gpu.facts.index))
    return [device for gpu in ordered for device in _devices(gpu, versions, driver)]


def shared_counters(gpus: Iterable[OfferedGpu]) -> list[dict[str, Any]]:
    """The counters of the GPUs that claims may partition, as slices have them."""
    return [{"name": _counter_set(gpu), "counters": gpu.options.counters()} for gpu in gpus if gpu.options is not None]


def _devices(gpu: OfferedGpu, versions: DriverVersions, driver: str) -> Iterable[OfferedDevice]:
    facts = gpu.facts
    taints = _taints(gpu, driver)
    common = _common(gpu, versions)
    if facts.memory_mib and (not gpu.options.kept if gpu.options else not facts.mig_enabled):
        name = f"gpu-{_minor(facts)}"
        consumed = _consumes(gpu, gpu.options.counters()) if gpu.options else {}
        document = {"name": name, **_whole(facts, common, facts.memory_mib), **consumed, **taints}
        yield OfferedDevice(
            name=name, kind="gpu", uuid=facts.uuid, gpu=facts.uuid, index=facts.index, memory_mib=facts.memory_mib,
            document=document,
        )  # fmt: skip
    if gpu.options is not None:
        for profile, start in gpu.options.places():
            name = _partition_name(facts, profile, start)
            consumed = _consumes(gpu, gpu.options.consumed(profile, start))
            attributes = _partition_attributes(facts, profile, common)
            document = {"name": name, "attributes": attributes, **_capacity(profile, start), **consumed, **taints}
            yield OfferedDevice(
                name=name, kind="mig", uuid=facts.uuid, gpu=facts.uuid, index=facts.index,
                memory_mib=profile.holds_mib, document=document,
                place=MigInstance(profile=profile.name, start=start), size=profile.size,
            )  # fmt: skip
        return
    for each in sorted(gpu.mig, key=lambda device: (device.instance.start, device.uuid)) if facts.mig_enabled else ():
        known = each.instance.attributes
        name = _partition_name(facts, each.profile, each.instance.start)
        attributes = _partition_attributes(facts, each.profile, common)
        own = {"uuid": _text(each.uuid), "index": {"int": each.instance.ordinal}}
        capacity = _capacity(each.profile, each.instance.start, known)
        document = {"name": name, "attributes": own | attributes, **capacity, **taints}
        yield OfferedDevice(
            name=name, kind="mig", uuid=each.uuid, gpu=facts.uuid, index=facts.index,
            memory_mib=known.memory_mib if known else each.profile.holds_mib, document=document,
        )  # fmt: skip


def _minor(facts: GpuFacts) -> int:
    return facts.index if facts.minor is None else facts.minor


def _partition_name(facts: GpuFacts, profile: MigProfile, start: int) -> str:
    written = profile.name.replace(".", "").replace("+", "-")
    return f"gpu-{_minor(facts)}-mig-{written}-{profile.id}-{start}"


def _counter_set(gpu: OfferedGpu) -> str:
    return f"gpu-{_minor(gpu.facts)}-counter-set"


def _consumes(gpu: OfferedGpu, counters: Mapping[str, Any]) -> dict[str, Any]:
    return {"consumesCounters": [{"counterSet": _counter_set(gpu), "counters": dict(counters)}]}


def _common(gpu: OfferedGpu, versions: DriverVersions) -> dict[str, Any]:
    facts = gpu.facts
    compute = facts.compute or (0, 0)
    bus = pci_bus_id(gpu.bus_id)
    attributes: dict[str, Any] = {
        "productName": _text(facts.name),
        "brand": _text(next((brand for brand in _BRANDS if brand.lower() in facts.name.lower()), "Nvidia")),
        "architecture": _text(_LATER.get(compute, _ARCHITECTURES.get(compute[0], "Unknown"))),
        "cudaComputeCapability": {"version": f"{compute[0]}.{compute[1]}.0"},
        "driverVersion": {"version": semantic_version(versions.driver)},
        "cudaDriverVersion": {"version": f"{versions.cuda[0]}.{versions.cuda[1]}.0"},
    }
    if bus:
        attributes |= {"pcieBusID": _text(bus), f"{STANDARD}/pciBusID": _text(bus)}
    if facts.numa is not None:
        attributes[f"{STANDARD}/numaNode"] = {"int": facts.numa}
    return attributes


def _whole(facts: GpuFacts, common: Mapping[str, Any], memory_mib: int) -> dict[str, Any]:
    minor = _minor(facts)
    hami = {"type": _text(HAMI_TYPE), "uuid": _text(facts.uuid), "minor": {"int": minor}, **_unqualified(common)}
    attributes = {
        "type": _text("gpu"),
        "uuid": _text(facts.uuid),
        "index": {"int": facts.index},
        "minor": {"int": minor},
        **common,
        **{f"{HAMI_DRIVER}/{name}": hami[name] for name in hami},
    }
    total = str(memory_mib * MIB)
    memory = {"default": total, "validRange": {"min": "1Mi", "max": total, "step": "1Mi"}}
    cores = {"default": "0", "validRange": {"min": "0", "max": "100", "step": "1"}}
    return {
        "allowMultipleAllocations": True,
        "attributes": attributes,
        "capacity": {
            MEMORY: {"value": total, "requestPolicy": memory},
            CORES: {"value": "100", "requestPolicy": cores},
        },
    }


def _partition_attributes(facts: GpuFacts, profile: MigProfile, common: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": _text("mig"),
        f"{HAMI_DRIVER}/type": _text("mig"),
        "parentUUID": _text(facts.uuid),
        "profile": _text(profile.name),
        "parentIndex": {"int": _minor(facts)},
        **common,
    }


def _capacity(profile: MigProfile, start: int, known: MigAttributes | None = None) -> dict[str, Any]:
    """What a MIG device has, as far as it is `known`, and otherwise what its profile says."""
    engines = known.engines if known else profile.engines
    counts = {
        "multiprocessors": (known.sms if known else profile.sms) or 0,
        "copyEngines": engines.copy,
        "decoders": engines.decoders,
        "encoders": engines.encoders,
        "jpegEngines": engines.jpeg,
        "ofaEngines": engines.ofa,
        **{f"memorySlice{start + at}": 1 for at in range(profile.size)},
    }
    memory_mib = known.memory_mib if known else profile.holds_mib
    values = {MEMORY: memory_mib * MIB} | counts
    return {"capacity": {name: {"value": str(value)} for name, value in values.items()}}


def _unqualified(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if "/" not in name}


def _taints(gpu: OfferedGpu, driver: str) -> dict[str, Any]:
    """For unhealthy GPUs as NVIDIA's driver has them, so that the tolerations of claims are the same."""
    found = []
    if xid := _XID.search(gpu.reason):
        found.append({"key": f"{driver}/xid", "value": xid[1], "effect": "NoSchedule"})
    elif gpu.reason:
        found.append({"key": f"{driver}/gpu-lost", "effect": "NoSchedule"})
    if gpu.refused:
        found.append({"key": REFUSED, "effect": "NoSchedule"})
    return {"taints": found} if found else {}


def _text(value: str) -> dict[str, str]:
    return {"string": value[:_MAX_TEXT]}


def semantic_version(written: str) -> str:
    """A version of three numbers without leading zeros: 580.65.6 for 580.65.06; 0.0.0 where there is none."""
    numbers = [str(int(part)) for part in re.findall(r"\d+", written)[:3]]
    return ".".join([*numbers, *["0"] * (3 - len(numbers))])


def pci_bus_id(bus_id: str) -> str:
    """As Kubernetes has it, 0000:0a:00.0, from NVML's 00000000:0A:00.0; empty for anything else."""
    match = re.fullmatch(r"(?:[0-9A-Fa-f]{4})?([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9])", bus_id)
    return match[1].lower() if match else ""
