"""Resource quantities where the API server only wants to know whether they are some, and how much."""

from fractions import Fraction

from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity

RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(value: object) -> Fraction | None:
    """None for what is no quantity."""
    try:
        return parse_quantity(value, where="the quantity").value
    except BadInput:
        return None
