"""What the requests of a claim ask for, as its specification says it, before anything is allocated."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lamina.core.quantities import MIB, parse_quantity
from lamina.dra.names import CORES, MEMORY
from lamina.errors import BadInput

_KNOWN = (MEMORY, CORES)


class WantedDevices(Struct, frozen=True, kw_only=True):
    """One request, or one of its alternatives. `count` is None for all devices of a node, and `memory_mib` for a whole
    device. `expressions` are its own selectors in CEL, next to those of its class."""

    request: str
    device_class: str
    count: int | None = 1
    memory_mib: int | None = None
    cores: int = 0
    expressions: tuple[str, ...] = ()
    admin: bool = False
    uncertain: bool = False
    """Whether more decides than is read here, such as tolerations, or amounts of other capacities."""


class AttributeRule(Struct, frozen=True, kw_only=True):
    """Devices of these requests, of all if there are none, must be equal or `distinct` in an attribute."""

    attribute: str
    requests: tuple[str, ...] = ()
    distinct: bool = False


class WantedClaim(Struct, frozen=True, kw_only=True):
    """Each of `requests` has its alternatives, the preferred one first."""

    requests: tuple[tuple[WantedDevices, ...], ...]
    rules: tuple[AttributeRule, ...] = ()


def wanted_claim(spec: Mapping[str, Any]) -> WantedClaim:
    """What the specification of a claim asks for. Raises BadInput for an amount that is no quantity."""
    devices = spec.get("devices") or {}
    return WantedClaim(
        requests=tuple(tuple(_alternatives(each)) for each in devices.get("requests") or ()),
        rules=tuple(_rules(devices.get("constraints") or ())),
    )


def by_class(request: str, device_class: str, count: int) -> WantedClaim:
    """What a container asks for by an extended resource of a class."""
    return WantedClaim(requests=((WantedDevices(request=request, device_class=device_class, count=count),),))


def _alternatives(request: Mapping[str, Any]) -> Iterator[WantedDevices]:
    name = request.get("name", "")
    if request.get("exactly") is not None:
        yield _wanted(name, request["exactly"])
    for each in request.get("firstAvailable") or ():
        yield _wanted(f"{name}/{each.get('name', '')}", each)


def _wanted(name: str, written: Mapping[str, Any]) -> WantedDevices:
    amounts = (written.get("capacity") or {}).get("requests") or {}
    memory, cores = amounts.get(MEMORY), amounts.get(CORES)
    return WantedDevices(
        request=name,
        device_class=written.get("deviceClassName") or "",
        count=None if written.get("allocationMode") == "All" else int(written.get("count") or 1),
        memory_mib=None if memory is None else _rounded_up(memory, f"request {name}: {MEMORY}", MIB),
        cores=0 if cores is None else _rounded_up(cores, f"request {name}: {CORES}", 1),
        expressions=tuple(
            expression
            for each in written.get("selectors") or ()
            if (expression := (each.get("cel") or {}).get("expression"))
        ),
        admin=bool(written.get("adminAccess")),
        uncertain=bool(written.get("tolerations")) or bool(amounts.keys() - {*_KNOWN}),
    )


def _rounded_up(written: Any, where: str, unit: int) -> int:
    amount = parse_quantity(written, where=where).value
    if amount < 0:
        raise BadInput(f"{where} must not be negative, got {written!r}")
    return int(-(-amount // unit))


def _rules(constraints: Any) -> Iterator[AttributeRule]:
    for each in constraints:
        for field, distinct in (("matchAttribute", False), ("distinctAttribute", True)):
            if each.get(field):
                yield AttributeRule(
                    attribute=each[field], requests=tuple(each.get("requests") or ()), distinct=distinct
                )
