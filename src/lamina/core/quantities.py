"""Amounts as people and Kubernetes write them, read strictly: a misread unit is a limit that does not hold.

Quantities of Kubernetes are read exactly: `"10k"`, `"1e3"`, `"500m"`, `"10Gi"`, and plain numbers of JSON. The API
server writes them in a canonical form, so the 10000 of a manifest comes back as `"10k"`: code that reads a count or an
amount has to read this syntax. Values are fractions, never floats; nothing is rounded.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from lamina.errors import BadInput

MIB = 1024 * 1024
MAX_MIB = 2**31 - 1
"""The most memory in MiB of one GPU, 2 PiB: placement computes with arrays of 32-bit integers."""

_ALLOWED = "a whole number of MiB such as 5120, or a number with Mi, Gi or Ti such as 5Gi"
_UNITS = {"": 1, "Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}
_MEMORY = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>[A-Za-z]*)")


def parse_memory_mib(text: str, *, where: str) -> int:
    """MiB of `text`; `where` names the argument or field for the error. Raises BadInput unless the amount is over 0."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None or match["unit"] not in _UNITS:
        raise BadInput(f"{where} must be {_ALLOWED}, got {text!r}")
    mib = int(match["number"]) * _UNITS[match["unit"]]
    if mib == 0:
        raise BadInput(f"{where} must be greater than 0; use {_ALLOWED}")
    return mib


class MemoryAmount(NamedTuple):
    """Memory of a GPU: an amount, or a percentage of what the GPU has."""

    mib: int = 0
    percent: Fraction = Fraction(0)

    def of(self, total_mib: int, *, where: str) -> int:
        """MiB of a GPU with this much memory; a part of a MiB is left out. Raises BadInput where nothing is left."""
        mib = self.mib or int(self.percent * total_mib / 100)
        if mib == 0:
            raise BadInput(f"{where} is less than 1 MiB of the {total_mib} MiB of the GPU")
        return mib


_PERCENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?%")


def parse_gpu_memory(text: str, *, where: str) -> MemoryAmount:
    """The part of a GPU's memory that `text` is: an amount as above, or a percentage such as 25% or 12.5%.

    Raises BadInput unless it is over 0, and 100% at most.
    """
    if "%" not in text:
        return MemoryAmount(mib=parse_memory_mib(text, where=where))
    percent = Fraction(text.strip()[:-1]) if _PERCENT.fullmatch(text.strip()) else Fraction(0)
    if not 0 < percent <= 100:
        raise BadInput(f"{where} must be a percentage over 0% and up to 100%, such as 25% or 12.5%, got {text!r}")
    return MemoryAmount(percent=percent)


_DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
}
_BINARY = {unit: Fraction(1024**power) for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
# The exponent has two digits at most: a longer one would only serve to make a reader build an enormous number.
_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<unit>[numkMGTPE]|[KMGTPE]i)?)"
)


class Quantity(NamedTuple):
    """An exact amount. `binary` tells that it was written with a unit of powers of 1024, such as Gi."""

    value: Fraction
    binary: bool

    @property
    def whole(self) -> int | None:
        """The amount as a whole number, or None where it has a fraction."""
        return self.value.numerator if self.value.denominator == 1 else None


def parse_quantity(written: Any, *, where: str) -> Quantity:
    """The amount that `written`, a string or a number of JSON, stands for; `where` names the field for the error.

    Raises BadInput for anything that is not a quantity of Kubernetes.
    """
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise BadInput(f"{where} must be a Kubernetes quantity such as 2 or 1500m, got {written!r}")
    quantity = _quantity(str(written))
    if quantity is None:
        raise BadInput(f"{where} must be a Kubernetes quantity such as 2 or 1500m, got {written!r}")
    return quantity


@lru_cache(maxsize=4096)
def _quantity(text: str) -> Quantity | None:
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    value = Fraction(match["digits"].rstrip("."))
    if match["sign"] == "-":
        value = -value
    if match["exponent"] is not None:
        return Quantity(value * Fraction(10) ** int(match["exponent"]), binary=False)
    unit = match["unit"] or ""
    if unit in _BINARY:
        return Quantity(value * _BINARY[unit], binary=True)
    return Quantity(value * _DECIMAL[unit], binary=False)
