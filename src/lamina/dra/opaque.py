"""Opaque parameters of a claim, read strictly: what cannot be done is refused, never ignored.

Parameters of a class come before those of the claim.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lamina.core.quantities import MIB, parse_quantity
from lamina.dra.names import base_request
from lamina.errors import BadInput

SHARE_API, SHARE_CONFIG = "lamina.dev/v1alpha1", "ShareConfig"
_ORDER = ("FromClass", "FromClaim")


def own_parameters(config: Iterable[Mapping[str, Any]], driver: str) -> Iterator[tuple[Any, Sequence[str]]]:
    """The parameters for the driver in the configuration of an allocation, each with the requests that it names; none
    if it is for all."""
    entries = [each for each in config if (each.get("opaque") or {}).get("driver") == driver]
    for entry in sorted(entries, key=lambda each: _ORDER.index(each.get("source", "FromClaim"))):
        yield entry["opaque"].get("parameters"), entry.get("requests") or ()


def matching(requests: Iterable[str], named: Sequence[str]) -> Iterator[str]:
    """The requests to which parameters apply that name these; all, if they name none."""
    return (each for each in requests if not named or {each, base_request(each)} & set(named))


def is_share_config(parameters: Any) -> bool:
    """Whether the parameters are Lamina's own."""
    return isinstance(parameters, dict) and (parameters.get("apiVersion"), parameters.get("kind")) == (
        SHARE_API,
        SHARE_CONFIG,
    )


def read_mib(written: Any, where: str) -> int:
    """Rounded down to whole MiB: a program never gets more than the parameters allow."""
    amount = int(parse_quantity(written, where=where).value // MIB)
    if amount < 1:
        raise BadInput(f"{where} must be at least 1Mi, got {written!r}")
    return amount


def check_fields(value: Any, known: tuple[str, ...], where: str) -> None:
    """Raises BadInput for anything but an object with known fields."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be an object, got {value!r}")
    for field in value:
        if field not in known:
            raise BadInput(f"{where}: unknown field {field!r}; known are {', '.join(known)}")
