"""The environment under which a plain process tree is held to limits, where no container mounts anything."""

import re
from collections.abc import Mapping
from pathlib import Path

from lamina import native
from lamina.errors import BadInput

FACADES = ("facade/libcuda.so.1", "facade/libnvidia-ml.so.1", "facade/libcuda.so")


def environment(folder: Path, driver: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base` with what holds a process and its children to the limits in `folder`, over the driver in `driver`.

    A simulated driver also needs its SIMGPU_MACHINE in `base`. Raises BadInput for paths that the loader cannot take.
    """
    variables = dict(base or {})
    preload = [str(native.path(name)) for name in FACADES]
    for path in preload:
        if re.search(r"[\s:]", path):
            raise BadInput(f"{path} cannot be preloaded; install Lamina below a path without spaces and colons")
    if not driver.is_absolute():
        raise BadInput(f"the driver's directory {driver} must be an absolute path")
    others = [path for path in re.split(r"[\s:]+", variables.get("LD_PRELOAD", "")) if path and path not in preload]
    variables["LD_PRELOAD"] = ":".join([*preload, *others])
    variables["LAMINA_DIR"] = str(folder.absolute())
    variables["LAMINA_DRIVER"] = str(driver)
    return variables
