"""Amounts of memory as people write them, read strictly: a misread unit is a limit that does not hold."""

import re

from lamina.errors import BadInput

MIB = 1024 * 1024
MAX_MIB = 2**31 - 1
"""The most memory in MiB of one GPU, 2 PiB: placement computes with arrays of 32-bit integers."""

_ALLOWED = "a whole number of MiB such as 5120, or a number with Mi, Gi or Ti such as 5Gi"
_UNITS = {"": 1, "Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}
_FORM = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>[A-Za-z]*)")


def parse_memory_mib(text: str, *, where: str) -> int:
    """MiB of `text`; `where` names the argument or field for the error. Raises BadInput unless the amount is over 0."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match["unit"] not in _UNITS:
        raise BadInput(f"{where} must be {_ALLOWED}, got {text!r}")
    mib = int(match["number"]) * _UNITS[match["unit"]]
    if mib == 0:
        raise BadInput(f"{where} must be greater than 0; use {_ALLOWED}")
    return mib
