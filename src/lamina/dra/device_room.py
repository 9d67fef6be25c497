"""What is free of the devices in ResourceSlices: what they have, less what allocated claims have of them."""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from msgspec import Struct

from lamina.core.quantities import MIB, parse_quantity
from lamina.dra.names import CORES, MEMORY
from lamina.dra.selectors import selects
from lamina.dra.slices import COUNTERS, generation
from lamina.errors import BadInput

_Key = tuple[str, str, str]
"""Driver, pool and name of a device or a counter set."""
_KEEPING_OUT = ("NoSchedule", "NoExecute")


class DeviceRoom(Struct, kw_only=True):
    """One device of a node, and what is free of it. Memory is in MiB; cores are percent, None where it has none.

    A `shared` device has room for several claims; another one is free or in use.
    """

    driver: str
    pool: str
    node: str
    name: str
    attributes: Mapping[str, Any]
    memory_mib: int
    free_mib: int
    free_cores: int | None
    shared: bool
    in_use: bool = False
    consumes: tuple[tuple[str, str, int], ...] = ()
    """What it takes while it is in use: the counter set, the counter and the amount."""
    taints: tuple[str, ...] = ()

    @property
    def key(self) -> _Key:
        return self.driver, self.pool, self.name


class ClaimRoom:
    """The devices of one node, with the counters that keep them apart."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.devices: list[DeviceRoom] = []
        self._counters: dict[tuple[str, str, str, str], int] = {}
        """What is left of counters, by driver, pool, set and name."""

    def copy(self) -> "ClaimRoom":
        """The same, to try something."""
        other = ClaimRoom(self.node)
        other.devices = list(map(copy, self.devices))
        other._counters = dict(self._counters)
        return other

    def replace_by(self, other: "ClaimRoom") -> None:
        """Become as the other one, which was tried."""
        self.devices, self._counters = other.devices, other._counters

    def offer(self, driver: str, pool: str, counters: Iterable[tuple[str, str, int]]) -> None:
        """The node has these counters."""
        self._counters |= {(driver, pool, name, counter): amount for name, counter, amount in counters}

    def is_blocked(self, device: DeviceRoom) -> bool:
        """Whether other devices are in use that cannot exist at the same time."""
        return not device.in_use and any(
            self._counters.get((device.driver, device.pool, name, counter), 0) < amount
            for name, counter, amount in device.consumes
        )

    def take(self, device: DeviceRoom, memory_mib: int | None, cores: int) -> None:
        """Take this much of the device, or all of it."""
        if not device.in_use:
            for name, counter, amount in device.consumes:
                key = device.driver, device.pool, name, counter
                self._counters[key] = self._counters.get(key, 0) - amount
        device.in_use = True
        whole = memory_mib is None or not device.shared
        device.free_mib = 0 if whole or memory_mib is None else max(0, device.free_mib - memory_mib)
        if device.free_cores is not None:
            device.free_cores = max(0, device.free_cores - cores)


def rooms(
    slices: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]], rules: Iterable[Mapping[str, Any]] = ()
) -> dict[str, ClaimRoom]:
    """What the nodes have, by name. `rules` are DeviceTaintRules."""
    listed = list(rules)
    found: dict[str, ClaimRoom] = {}
    for each in _newest(slices):
        spec, node = each["spec"], each["spec"].get("nodeName") or ""
        if not node:
            continue
        room = found.setdefault(node, ClaimRoom(node))
        room.offer(spec["driver"], spec["pool"]["name"], _counters(spec))
        room.devices += [_device(spec, node, device, listed) for device in spec.get("devices") or ()]
    known = {device.key: (room, device) for room in found.values() for device in room.devices}
    for result in (result for claim in claims for result in _results(claim)):
        entry = known.get((result.get("driver") or "", result.get("pool") or "", result.get("device") or ""))
        if entry is not None and not result.get("adminAccess"):
            consumed = result.get("consumedCapacity") or {}
            memory = _amount(consumed[MEMORY], MIB) if MEMORY in consumed else None
            entry[0].take(entry[1], memory, _amount(consumed.get(CORES, 0), 1))
    return found


def _results(claim: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def _newest(slices: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    listed = sorted(slices, key=lambda each: str(each["metadata"]["name"]))
    newest: dict[tuple[str, str], int] = {}
    for each in listed:
        pool = each["spec"]["driver"], each["spec"]["pool"]["name"]
        newest[pool] = max(newest.get(pool, 0), generation(each))
    for each in listed:
        if generation(each) == newest[each["spec"]["driver"], each["spec"]["pool"]["name"]]:
            yield each


def _device(
    spec: Mapping[str, Any], node: str, device: Mapping[str, Any], rules: Iterable[Mapping[str, Any]]
) -> DeviceRoom:
    known = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
    by_rules = [rule["spec"].get("taint") or {} for rule in rules if selects(rule, known)]
    capacity = device.get("capacity") or {}
    memory = _amount((capacity.get(MEMORY) or {}).get("value", 0), MIB)
    return DeviceRoom(
        driver=spec["driver"],
        pool=spec["pool"]["name"],
        node=node,
        name=device["name"],
        attributes=device.get("attributes") or {},
        memory_mib=memory,
        free_mib=memory,
        free_cores=_amount(capacity[CORES].get("value", 0), 1) if CORES in capacity else None,
        shared=bool(device.get("allowMultipleAllocations")),
        consumes=tuple(
            (each["counterSet"], name, _amount(counter.get("value", 0), 1))
            for each in device.get("consumesCounters") or ()
            for name, counter in (each.get("counters") or {}).items()
        ),
        taints=tuple(
            str(taint.get("key", ""))
            for taint in (*(device.get("taints") or ()), *by_rules)
            if taint.get("effect") in _KEEPING_OUT
        ),
    )


def _counters(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for each in spec.get(COUNTERS) or ():
        for name, counter in (each.get("counters") or {}).items():
            yield each["name"], name, _amount(counter.get("value", 0), 1)


def _amount(written: Any, unit: int) -> int:
    """In whole units; nothing where it is no quantity."""
    try:
        return int(parse_quantity(written, where="capacity").value // unit)
    except BadInput:
        return 0
