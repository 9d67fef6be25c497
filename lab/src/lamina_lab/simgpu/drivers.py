"""The first driver of each CUDA version, for machines that are described by their CUDA version alone."""

import re

from lamina.errors import BadInput

_SEVERAL = re.compile(r"([0-9]{1,2})x(.+)")

CURRENT = "13.0"
FIRST_DRIVERS = {
    "11.7": "515.43.04",
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
}


def simulated(text: str) -> tuple[int, str, str]:
    """The number of GPUs, the model and the CUDA version of `MODEL`, `MODEL@VERSION` or `2xMODEL`.

    Raises BadInput for a version that is not known.
    """
    rest, at, version = text.partition("@")
    several = _SEVERAL.fullmatch(rest)
    count, model = (int(several[1]), several[2]) if several else (1, rest)
    if not at:
        return count, model, CURRENT
    if version not in FIRST_DRIVERS:
        raise BadInput(f"{text!r} has no known CUDA version after the @; use one of {', '.join(FIRST_DRIVERS)}")
    return count, model, version
