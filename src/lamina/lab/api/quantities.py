"""Resource quantities as Kubernetes writes them: `500m`, `1.5Gi`, `2e3`."""

from __future__ import annotations

import re
from decimal import Decimal

_FORM = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(value: object) -> Decimal | None:
    """None for what is no quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _FORM.match(str(value).strip())
    if match is None:
        return None
    number = Decimal(match[1])
    if match[2]:
        return number.scaleb(int(match[2][1:]))
    suffix = match[3] or ""
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    return number.scaleb(_DECIMAL.get(suffix, 0))
