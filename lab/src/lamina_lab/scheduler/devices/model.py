"""Devices as resource slices describe them, in plain data. Quantities are exact fractions."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from msgspec import Struct
from semver import Version

from lamina_lab.kubernetes.device_selectors import Value
from lamina_lab.kubernetes.quantities import parse


class DeviceId(NamedTuple):
    """A device's identity in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class DeviceCapacity(Struct, frozen=True):
    """One capacity of a device, and what a request for a part of it may be.

    `default` is consumed by requests that do not name the capacity; None means all of it.
    """

    value: Fraction
    default: Fraction | None = None
    minimum: Fraction | None = None
    maximum: Fraction | None = None
    step: Fraction | None = None
    values: tuple[Fraction, ...] = ()


class PoolDevice(Struct, frozen=True):
    """One device of a pool. Attributes have qualified names; names of capacities are as written in the slice."""

    id: DeviceId
    attributes: Mapping[str, Value]
    capacity: Mapping[str, DeviceCapacity]
    counters: tuple[tuple[str, Mapping[str, Fraction]], ...]
    taints: tuple[Mapping[str, Any], ...]
    shareable: bool
    """Whether several claims may have it at once."""
    binds_to_node: bool
    conditions: tuple[str, ...]
    failures: tuple[str, ...]
    place: Mapping[str, Any]
    """nodeName, nodeSelector or allNodes, of the device or of its slice."""


def device(entry: Mapping[str, Any], spec: Mapping[str, Any]) -> PoolDevice:
    """A device in the spec of its slice."""
    driver = str(spec["driver"])
    own = bool(spec.get("perDeviceNodeSelection"))
    return PoolDevice(
        id=DeviceId(driver, str(spec["pool"]["name"]), str(entry["name"])),
        attributes={
            qualified(name, driver): value
            for name, given in (entry.get("attributes") or {}).items()
            if (value := _attribute(given)) is not None
        },
        capacity={name: _capacity(given) for name, given in (entry.get("capacity") or {}).items()},
        counters=tuple((use["counterSet"], counters(use)) for use in entry.get("consumesCounters") or ()),
        taints=tuple(entry.get("taints") or ()),
        shareable=bool(entry.get("allowMultipleAllocations")),
        binds_to_node=bool(entry.get("bindsToNode")),
        conditions=tuple(entry.get("bindingConditions") or ()),
        failures=tuple(entry.get("bindingFailureConditions") or ()),
        place=entry if own else spec,
    )


def counters(entry: Mapping[str, Any]) -> dict[str, Fraction]:
    """The amounts in a counter set, or in what a device consumes of one."""
    return {name: amount(given.get("value")) for name, given in (entry.get("counters") or {}).items()}


def qualified(name: str, driver: str) -> str:
    """The name with its domain, which is the driver's where none is written."""
    return name if "/" in name else f"{driver}/{name}"


def amount(written: Any) -> Fraction:
    found = parse(written)
    return Fraction(0) if found is None else found


def _attribute(given: Mapping[str, Any]) -> Value | None:
    """The value; None for lists, which the lab does not compare."""
    for kind in ("bool", "int", "string"):
        if given.get(kind) is not None:
            found: Value = given[kind]
            return found
    return Version.parse(given["version"]) if given.get("version") else None


def _capacity(given: Mapping[str, Any]) -> DeviceCapacity:
    policy = given.get("requestPolicy") or {}
    allowed = policy.get("validRange") or {}
    return DeviceCapacity(
        value=amount(given.get("value")),
        default=parse(policy.get("default")),
        minimum=parse(allowed.get("min")),
        maximum=parse(allowed.get("max")),
        step=parse(allowed.get("step")),
        values=tuple(amount(value) for value in policy.get("validValues") or ()),
    )
