"""The functions that the simulated driver has, with their parameters, from the prototypes of the build."""

import re
from dataclasses import dataclass
from functools import cache

from lamina_lab import simgpu
from tests.building import ROOT

LIBRARIES = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}
_PROTOTYPE = re.compile(r"(?:CUresult|nvmlReturn_t) (\w+)\((.*)\);")
_PARAMETER = re.compile(r"(.+?) ?(\w+)")
_FLOATS = {"cuParamSetf"}
"""Parameters that the replaying program does not pass."""
_WRITES_FILES = {"cuGraphDebugDotPrint"}


@dataclass(frozen=True)
class Parameter:
    """One parameter. The type is without spaces, as in `constvoid*`."""

    kind: str
    name: str

    @property
    def is_place(self) -> bool:
        """Whether the function writes there."""
        return self.kind.endswith("*") and not self.kind.startswith("const")


@dataclass(frozen=True)
class Function:
    """One function, by its symbol."""

    name: str
    parameters: tuple[Parameter, ...]


def _parameters(text: str) -> tuple[Parameter, ...]:
    parts = [] if text == "void" else text.split(", ")
    found = [_PARAMETER.fullmatch(part) for part in parts]
    return tuple(Parameter(each[1].replace(" ", ""), each[2]) for each in found if each)


@cache
def classes() -> dict[str, str]:
    """The class of each function, as the facade has it."""
    rows = [
        row.split() for name in LIBRARIES for row in (ROOT / f"native/facade/{name}.classes").read_text().splitlines()
    ]
    return {row[1]: row[0] for row in rows if len(row) >= 2}


def _exports(library: str) -> bytes:
    return (simgpu.driver_folder() / LIBRARIES[library]).read_bytes()


@cache
def functions() -> dict[str, Function]:
    """All that are compared: not those that the facade forbids, as its documentation says."""
    found = {}
    for library in LIBRARIES:
        exports = _exports(library)
        for name, text in _PROTOTYPE.findall((ROOT / f"native/include/{library}_prototypes.h").read_text()):
            served = b"\0" + name.encode() + b"\0" in exports and classes().get(name) not in {"forbid", None}
            if served and name not in _FLOATS | _WRITES_FILES:
                found[name] = Function(name, _parameters(text))
    return found
