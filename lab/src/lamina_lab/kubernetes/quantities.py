"""Resource quantities: whether a value is one, and how much it is."""

import math
from fractions import Fraction

from lamina.core.quantities import parse_quantity
from lamina.errors import BadInput

_UNITS = "E", "P", "T", "G", "M", "k", "", "m", "u", "n"
_DECIMAL = [(unit, Fraction(1000) ** (6 - at)) for at, unit in enumerate(_UNITS)]
RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(value: object) -> Fraction | None:
    """The quantity's value; None if it is not a quantity."""
    try:
        return parse_quantity(value, where="the quantity").value
    except BadInput:
        return None


def written(value: Fraction) -> str:
    """A whole number as Kubernetes writes it with binary units: 4294967296 is "4Gi"."""
    number, unit = int(value), ""
    for larger in ("Ki", "Mi", "Gi", "Ti", "Pi"):
        if not number or number % 1024:
            break
        number, unit = number // 1024, larger
    return f"{number}{unit}"


def canonical(value: Fraction, sample: object) -> str:
    """The quantity as Kubernetes writes it: with binary units where `sample` has one, else with decimal ones."""
    if str(sample).endswith("i") and value.denominator == 1:
        return written(value)
    for unit, factor in _DECIMAL:
        if (amount := value / factor).denominator == 1:
            return f"{amount}{unit if amount else ''}"
    return f"{math.ceil(value * 10**9)}n"
