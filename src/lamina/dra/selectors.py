"""Whether an expression of a DeviceClass or of a request selects a device, where that can be said without CEL.

Classes of drivers compare the driver and attributes of a device with texts and numbers. Such comparisons, joined by
`&&`, are read here; of anything else it is not known whether it holds.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lamina.dra.names import STANDARD

_QUOTED = r"""(?:'([^'\\]*)'|"([^"\\]*)")"""
_DRIVER = re.compile(rf"device\.driver\s*==\s*{_QUOTED}")
_ATTRIBUTE = re.compile(rf"device\.attributes\[\s*{_QUOTED}\s*\]\.(\w+)\s*==\s*(?:{_QUOTED}|(-?\d+)|(true|false))")
_HAS = re.compile(rf"{_QUOTED}\s+in\s+device\.attributes(?:\[\s*{_QUOTED}\s*\])?")
_TEXT = re.compile(_QUOTED)


def selects_all(expressions: Iterable[str], driver: str, attributes: Mapping[str, Any]) -> bool | None:
    """Whether all of the expressions select a device of this driver; None where that is not known.

    `attributes` are those of a slice: names without a domain have that of the driver.
    """
    found = [_selects(term, driver, attributes) for each in expressions for term in _terms(each)]
    if False in found:
        return False
    return None if None in found else True


def named_texts(expressions: Iterable[str]) -> set[str]:
    """All quoted texts in the expressions, such as names of drivers."""
    return {one or other for each in expressions for one, other in _TEXT.findall(each)}


def attribute_of(driver: str, attributes: Mapping[str, Any], name: str) -> Any:
    """The value of an attribute by its qualified name; None where the device does not have it."""
    domain, _, short = name.rpartition("/")
    found = attributes.get(name, attributes.get(short) if domain in ("", driver) else None)
    return None if found is None else next(iter(found.values()), None)


def _terms(expression: str) -> list[str]:
    """The comparisons that all must hold. With any other operator, the expression is one term, which is not known."""
    if set(_TEXT.sub("", expression)) & set("|!?("):
        return [expression]
    return [part.strip() for part in expression.split("&&")]


def _selects(term: str, driver: str, attributes: Mapping[str, Any]) -> bool | None:
    if found := _DRIVER.fullmatch(term):
        return driver == (found[1] or found[2] or "")
    if found := _ATTRIBUTE.fullmatch(term):
        domain, name = found[1] or found[2] or "", found[3]
        value = attribute_of(driver, attributes, f"{domain}/{name}")
        wanted: Any = found[4] if found[4] is not None else found[5]
        if found[6] is not None:
            wanted = int(found[6])
        elif found[7] is not None:
            wanted = found[7] == "true"
        return bool(value == wanted and type(value) is type(wanted))
    if found := _HAS.fullmatch(term):
        name, domain = found[1] or found[2] or "", found[3] or found[4] or ""
        if domain:
            return attribute_of(driver, attributes, f"{domain}/{name}") is not None
        return name in (driver, STANDARD) or any(each.startswith(f"{name}/") for each in attributes)
    return None


_CRITERIA = ("driver", "pool", "device")


def selects(rule: Mapping[str, Any], device: Mapping[str, Any]) -> bool:
    """Whether a rule is about a device, given by its `driver`, `pool` and `device`.

    Any of the three may be missing in the selector. Without a selector a rule selects no device, with an empty one all.
    """
    selector = (rule.get("spec") or {}).get("deviceSelector")
    return selector is not None and all(selector.get(key) in (None, device.get(key)) for key in _CRITERIA)
