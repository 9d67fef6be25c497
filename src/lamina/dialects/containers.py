"""The containers of a pod, and how amounts are read from them, whatever the dialect."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lamina.core.grants import MAX_CONTAINERS
from lamina.core.quantities import Quantity, parse_quantity
from lamina.errors import BadInput

MAX_MEMORY = 2**31 - 1
"""The most units of memory per GPU that one container can request."""
MAX_RESOURCES = 1000
"""The most limits and requests of all containers of a pod together. Each of their names has to be looked at."""
_MAX_DIGITS, _MAX_SHOWN = 18, 100
_BYTE_UNITS = ("i", "M", "G", "T", "P", "E")
"""What amounts of bytes end with. No GPU has a million MiB, so an M or a G was not added by the API server."""
_NUMBER = re.compile(r"[+-]?[0-9.]{1,40}([eE][+-]?[0-9]{1,40}|[a-zA-Z]{0,2})")


class ContainerManifest(NamedTuple):
    """A container of a pod: its JSON pointer, its specification, and the resources that it requests, by name."""

    pointer: str
    spec: Mapping[str, Any]
    requested: Mapping[str, object]
    init: bool
    sidecar: bool

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def where(self) -> str:
        """How errors name it."""
        return f'container "{self.name}"'

    def requests_any(self, resources: Iterable[str]) -> bool:
        """Whether it requests any of these resources."""
        return any(name in self.requested for name in resources)


def read_containers(pod: Mapping[str, Any]) -> tuple[ContainerManifest, ...]:
    """The containers in the order in which Kubernetes starts them.

    Raises BadInput for malformed resources, and for a pod that is too large to be read in a short time.
    """
    spec = pod.get("spec") or {}
    count = sum(len(spec.get(field) or ()) for field in ("initContainers", "containers"))
    if count > MAX_CONTAINERS:
        raise BadInput(f"the pod has {count} containers; it may have at most {MAX_CONTAINERS}")
    containers, resources = [], 0
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            requests, limits = _amounts(container)
            resources += len(requests) + len(limits)
            if resources > MAX_RESOURCES:
                raise BadInput(f"the containers of a pod may have at most {MAX_RESOURCES} limits and requests in total")
            init = field == "initContainers"
            sidecar = init and container.get("restartPolicy") == "Always"
            # A limit takes precedence over a request, as in HAMi.
            requested = {**requests, **limits} if requests else limits
            containers.append(ContainerManifest(f"/spec/{field}/{index}", container, requested, init, sidecar))
    return tuple(containers)


def _amounts(container: Mapping[str, Any]) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """The requests and the limits of the container, by resource name."""
    resources = container.get("resources") or {}
    if not isinstance(resources, dict):
        raise BadInput(f'container "{container.get("name")}": resources must be a mapping, got {quote(resources)}')
    for field in ("requests", "limits"):
        amounts = resources.get(field) or {}
        if not isinstance(amounts, dict):
            where = f'container "{container.get("name")}": resources.{field}'
            raise BadInput(f"{where} must map names to amounts, got {quote(amounts)}")
    return resources.get("requests") or {}, resources.get("limits") or {}


def read_integer(container: ContainerManifest, name: str, minimum: int, maximum: int, *, step: int = 1) -> int | None:
    """The integer that the container gives for `name`, or None where it gives none. Raises BadInput."""
    if name not in container.requested:
        return None
    written = container.requested[name]
    number = _read_digits(written)
    unit = ""
    if number is None and (quantity := _read_quantity(written)) is not None:
        number, unit = quantity.whole, " without a unit such as Gi" if quantity.binary else ""
    if number is None or unit or not minimum <= number <= maximum or number % step:
        expected = "an integer" if step == 1 else f"a multiple of {step}"
        raise BadInput(
            f"{container.where}: {name} must be {expected} from {minimum} to {maximum}{unit}, got {show(written)}"
        )
    return number


def read_memory(container: ContainerManifest, name: str, unit_mib: int) -> int | None:
    """The units of memory, of `unit_mib` MiB each, that the container requests by `name`; None where it requests none.

    Raises BadInput. An amount with a unit of its own means bytes, so the sentence has the number to write instead.
    The unit k is no such unit: the API server writes 10000 as 10k.
    """
    written = container.requested.get(name)
    if isinstance(written, str) and written.endswith(_BYTE_UNITS) and (quantity := _read_quantity(written)) is not None:
        units = quantity.value / (unit_mib * 2**20)
        instead = f"; for {written}, write {math.ceil(units)}" if 1 <= units <= MAX_MEMORY else ""
        unit = "MiB" if unit_mib == 1 else f"units of {unit_mib} MiB"
        raise BadInput(f"{container.where}: {name} must be an integer in {unit} without a unit{instead}, got {written}")
    return read_integer(container, name, 1, MAX_MEMORY)


def is_zero(written: object) -> bool:
    """Whether an amount is 0 in any form."""
    quantity = _read_quantity(written)
    return quantity is not None and quantity.value == 0


def _read_quantity(written: object) -> Quantity | None:
    try:
        return parse_quantity(written, where="")
    except BadInput:
        return None


def _read_digits(written: object) -> int | None:
    """The usual form of an amount, which needs no parser."""
    if isinstance(written, str) and written.isdecimal() and written.isascii() and len(written) <= _MAX_DIGITS:
        return int(written)
    return None


def show(written: object) -> str:
    """An amount as it was written, for an error message: numbers as they are, all else quoted."""
    return written if isinstance(written, str) and _NUMBER.fullmatch(written) else quote(written)


def quote(written: object) -> str:
    """What was written, as JSON in ASCII and shortened, for an error message."""
    text = json.dumps(written, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def is_privileged(container: ContainerManifest) -> bool:
    security = container.spec.get("securityContext")
    return isinstance(security, Mapping) and security.get("privileged") is True


def explain_privileged(container: ContainerManifest) -> str:
    """The sentence that refuses a privileged container."""
    return (
        f"{container.where}: a privileged container sees every GPU of its node, so its share cannot be enforced; "
        "set privileged to false or request no GPU"
    )


def check_not_privileged(container: ContainerManifest) -> None:
    """Raises BadInput for a container that sees all devices of its node, whatever it was granted."""
    if is_privileged(container):
        raise BadInput(explain_privileged(container))


def check_limits_equal_requests(container: ContainerManifest, names: Iterable[str]) -> None:
    """Raises BadInput where the limit and the request of one of these resources differ."""
    resources = container.spec.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests")
    if not limits or not requests:
        return
    for name in names:
        if name in limits and name in requests:
            where = f"{container.where}: {name}"
            limit, request = (parse_quantity(amounts[name], where=where).value for amounts in (limits, requests))
            if limit != request:
                raise BadInput(
                    f"{where} must have a request equal to its limit {show(limits[name])}, got {show(requests[name])}"
                )
