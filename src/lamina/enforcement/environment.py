"""The environment under which a plain process tree is held to limits, where no container mounts anything."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from lamina import native
from lamina.enforcement.facade_copy import fitted_to
from lamina.errors import BadInput

FACADE = ("libcuda.so.1", "libnvidia-ml.so.1", "libcuda.so")
_ALIAS = "libcuda.so"
"""It only leads to the first."""
_SEPARATOR = re.compile(r"[\s:]")
"""What separates the paths in LD_PRELOAD."""


def environment(folder: Path, driver: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base` with what holds a process and its children to the limits in `folder`, over the driver in `driver`.

    The facade for this driver is written into `folder`. A simulated driver also needs its SIMGPU_MACHINE in `base`.
    Raises BadInput for paths that the loader cannot take, and OSError when `folder` cannot be written.
    """
    variables = dict(base or {})
    if not driver.is_absolute():
        raise BadInput(f"the driver's directory {driver} must be an absolute path")
    preload = [str(path) for path in _libraries(folder.absolute(), driver)]
    before = [path for path in re.split(r"[\s:]+", variables.get("LD_PRELOAD", "")) if path]
    others = [path for path in before if Path(path).name not in FACADE]
    variables["LD_PRELOAD"] = ":".join([*preload, *others])
    variables["LAMINA_DIR"] = str(folder.absolute())
    variables["LAMINA_DRIVER"] = str(driver)
    return variables


def _libraries(folder: Path, driver: Path) -> list[Path]:
    """The facade for a driver. Raises BadInput."""
    built = [native.path(f"facade/{name}") for name in FACADE]
    for path in built:
        if _SEPARATOR.search(str(path)):
            raise BadInput(f"{path} cannot be preloaded; install Lamina below a path without spaces and colons")
    if not loadable(folder):
        return built
    return [path if path.name == _ALIAS else _copied(path, folder / "facade" / path.name, driver) for path in built]


def loadable(folder: Path) -> bool:
    """Whether the loader takes libraries from a directory. Without the facade it would still start programs.

    Where it does not, programs get the facade as it was built, which also has functions that the driver lacks.
    """
    if _SEPARATOR.search(str(folder)) or not folder.is_dir():
        return False
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def _copied(library: Path, copy: Path, driver: Path) -> Path:
    content = fitted_to(library.read_bytes(), driver / library.name)
    if not copy.exists() or copy.read_bytes() != content:
        # Programs that run have the file mapped that was there before.
        copy.parent.mkdir(exist_ok=True)
        written = copy.with_suffix(".tmp")
        written.write_bytes(content)
        written.replace(copy)
    return copy
