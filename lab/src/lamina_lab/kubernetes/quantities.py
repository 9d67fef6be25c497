"""Resource quantities: whether a value is one, and how much it is."""

from fractions import Fraction

from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity

RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(value: object) -> Fraction | None:
    """The quantity's value; None if it is not a quantity."""
    try:
        return parse_quantity(value, where="the quantity").value
    except BadInput:
        return None
