"""CEL selectors of devices, as in device classes and claims.

An expression sees `device` with `driver`, `allowMultipleAllocations`, and `attributes` and `capacity` by domain and
name. A domain that a device lacks is an empty map; an attribute that it lacks is an error, as in Kubernetes. Of the
extensions of Kubernetes, quantities, semantic versions, and the case of strings exist here; `cel.bind` does not.
"""

import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from celpy.celtypes import BoolType, DoubleType, IntType, MapType, StringType
from semver import Version

from lamina_lab.kubernetes.expressions import Language
from lamina_lab.kubernetes.quantities import parse

Value = bool | int | str | Version | Fraction
"""The value of an attribute or capacity: Version for semantic versions, Fraction for quantities."""


class _Domains(MapType):  # type: ignore[misc]  # the library has no types
    """Maps by domain: an unknown domain is an empty map."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if key in self else MapType()


@functools.total_ordering
class _Ordered:
    """A quantity or a version inside CEL."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and type(self.value) is type(other.value) and self.value == other.value

    def __lt__(self, other: "_Ordered") -> bool:
        return bool(self.value < other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def check(expression: str) -> None:
    """Raises ExpressionError if the selector does not compile."""
    _LANGUAGE.check(expression)


def selects(
    expression: str, driver: str, attributes: Mapping[str, Value], capacity: Mapping[str, Value], *, shareable: bool
) -> bool:
    """Whether a device is selected. Names of attributes and capacities have their domain. Raises ExpressionError."""
    members = {
        "driver": StringType(driver),
        "allowMultipleAllocations": BoolType(shareable),
        "attributes": _by_domain(attributes),
        "capacity": _by_domain(capacity),
    }
    return _LANGUAGE.holds(expression, {"device": _map(members)})


def _by_domain(values: Mapping[str, Value]) -> MapType:
    domains: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, _, own = name.rpartition("/")
        domains.setdefault(domain, {})[own] = _cel(value)
    return _Domains({StringType(domain): _map(entries) for domain, entries in domains.items()})


def _map(entries: Mapping[str, Any]) -> MapType:
    return MapType({StringType(name): value for name, value in entries.items()})


def _cel(value: Value) -> Any:
    match value:
        case bool():
            return BoolType(value)
        case int():
            return IntType(value)
        case str():
            return StringType(value)
        case _:
            return _Ordered(value)


def _quantity(text: Any) -> _Ordered:
    value = parse(str(text))
    if value is None:
        raise ValueError(f"{text} is not a quantity")
    return _Ordered(value)


def _is_quantity(text: Any) -> BoolType:
    return BoolType(parse(str(text)) is not None)


def _compared(one: _Ordered, other: _Ordered) -> IntType:
    return IntType((one > other) - (one < other))


def _plus(sign: int) -> Callable[[_Ordered, Any], _Ordered]:
    return lambda one, other: _Ordered(
        one.value + sign * (other.value if isinstance(other, _Ordered) else Fraction(int(other)))
    )


_LANGUAGE = Language(
    {
        "quantity": _quantity,
        "isQuantity": _is_quantity,
        "semver": lambda text: _Ordered(Version.parse(str(text))),
        "isSemver": lambda text: BoolType(Version.is_valid(str(text))),
        "compareTo": _compared,
        "isGreaterThan": lambda one, other: BoolType(one > other),
        "isLessThan": lambda one, other: BoolType(one < other),
        "asInteger": lambda one: IntType(int(one.value)),
        "asApproximateFloat": lambda one: DoubleType(float(one.value)),
        "sign": lambda one: IntType((one.value > 0) - (one.value < 0)),
        "add": _plus(1),
        "sub": _plus(-1),
        "major": lambda one: IntType(one.value.major),
        "minor": lambda one: IntType(one.value.minor),
        "patch": lambda one: IntType(one.value.patch),
        "lowerAscii": lambda text: StringType(str(text).lower()),
        "upperAscii": lambda text: StringType(str(text).upper()),
    }
)
