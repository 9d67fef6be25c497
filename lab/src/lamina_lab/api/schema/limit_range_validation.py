"""Validation of LimitRanges: their types, and that defaults and bounds do not contradict each other."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import StatusCause, bad_request, forbidden_field, invalid_value
from lamina_lab.kubernetes.quantities import RULE, canonical, parse

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ORDER = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""Which amount may not be over which, and the field and sentence where it is."""


def limit_range(obj: Object) -> list[StatusCause]:
    causes: list[StatusCause] = []
    seen: set[str] = set()
    for index, item in enumerate(obj["spec"]["limits"]):
        at, kind = f"spec.limits[{index}]", item.get("type", "")
        if kind not in _TYPES and "/" not in kind:
            causes.append(invalid_value(f"{at}.type", kind, "must be a standard limit type or fully qualified"))
        if kind in seen:
            causes.append(StatusCause(f"{at}.type", f'Duplicate value: "{kind}"', "FieldValueDuplicate"))
        seen.add(kind)
        causes += _item(item, at, kind)
    return causes


def _item(item: Object, at: str, kind: str) -> Iterator[StatusCause]:
    if kind == "Pod":
        for field in ("default", "defaultRequest"):
            if item.get(field):
                yield forbidden_field(f"{at}.{field}", "may not be specified when `type` is 'Pod'")
    amounts = {field: item.get(field) or {} for field in _AMOUNTS}
    for field, values in amounts.items():
        for name, value in values.items():
            if parse(value) is None:
                raise bad_request(f"{at}.{field}[{name}]: {RULE}")
    for name in dict.fromkeys(name for values in amounts.values() for name in values):
        yield from _resource({field: values[name] for field, values in amounts.items() if name in values}, at, name)


def _resource(amounts: dict[str, Any], at: str, name: str) -> Iterator[StatusCause]:
    """The amounts of one resource, by field."""
    values = {field: parse(amount) or Fraction(0) for field, amount in amounts.items()}
    shown = {field: canonical(values[field], amount) for field, amount in amounts.items()}
    for lower, upper, field, sentence in _ORDER:
        if lower in values and upper in values and values[lower] > values[upper]:
            yield invalid_value(f"{at}.{field}[{name}]", shown[field], sentence.format(shown[lower], shown[upper]))
    if "/" in name and "default" in values and values.get("defaultRequest", values["default"]) != values["default"]:
        detail = f"default value {shown['default']} must equal to defaultRequest value {shown['defaultRequest']}"
        yield invalid_value(f"{at}.defaultRequest[{name}]", shown["defaultRequest"], f"{detail} in {name}")
    if "maxLimitRequestRatio" in values and values["maxLimitRequestRatio"] < 1:
        ratio = shown["maxLimitRequestRatio"]
        yield invalid_value(f"{at}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1")
