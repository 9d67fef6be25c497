"""What a claim asks for, in plain data."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.devices.model import amount

ALL = "All"


class Alternative(Struct, frozen=True):
    """One way to serve a request. `name` is the request's, or `request/subrequest`. `count` is None for all devices."""

    name: str
    device_class: str
    selectors: tuple[str, ...]
    count: int | None
    admin: bool
    tolerations: tuple[Mapping[str, Any], ...]
    capacity: Mapping[str, Fraction]

    @property
    def request(self) -> str:
        return self.name.partition("/")[0]

    def named_by(self, names: tuple[str, ...]) -> bool:
        """Whether a constraint or configuration for requests `names` is for this one. No names mean all."""
        return not names or self.request in names or self.name in names


class Constraint(Struct, frozen=True):
    """Devices of the named requests must have the same value of an attribute, or all different ones."""

    requests: tuple[str, ...]
    attribute: str
    distinct: bool


class ClaimRequests(Struct, frozen=True):
    """What one claim needs: for each request its alternatives, the preferred one first."""

    claim: Object
    requests: tuple[tuple[Alternative, ...], ...]
    constraints: tuple[Constraint, ...]

    @property
    def key(self) -> str:
        return objects.key(self.claim)


def parse(claim: Object) -> ClaimRequests:
    devices = objects.spec(claim).get("devices") or {}
    return ClaimRequests(
        claim,
        tuple(tuple(_alternatives(request)) for request in devices.get("requests") or ()),
        tuple(_constraint(entry) for entry in devices.get("constraints") or ()),
    )


def _alternatives(request: Mapping[str, Any]) -> Iterator[Alternative]:
    if request.get("exactly"):
        yield _alternative(request["name"], request["exactly"])
    for sub in request.get("firstAvailable") or ():
        yield _alternative(f"{request['name']}/{sub['name']}", sub)


def _alternative(name: str, wanted: Mapping[str, Any]) -> Alternative:
    requested = (wanted.get("capacity") or {}).get("requests") or {}
    return Alternative(
        name=name,
        device_class=str(wanted.get("deviceClassName") or ""),
        selectors=tuple((entry.get("cel") or {}).get("expression", "") for entry in wanted.get("selectors") or ()),
        count=None if wanted.get("allocationMode") == ALL else int(wanted.get("count") or 1),
        admin=bool(wanted.get("adminAccess")),
        tolerations=tuple(wanted.get("tolerations") or ()),
        capacity={entry: amount(value) for entry, value in requested.items()},
    )


def _constraint(entry: Mapping[str, Any]) -> Constraint:
    distinct = entry.get("distinctAttribute")
    attribute = str(distinct or entry.get("matchAttribute") or "")
    return Constraint(tuple(entry.get("requests") or ()), attribute, bool(distinct))
