"""A simulated GPU in place of the machine's driver, for `--simulate`.

Lamina contains no simulated driver. A distribution such as lamina-lab offers one by an entry point of the group
`lamina.simulators`: a function that takes the model of a card and an empty folder, and returns a `SimulatedMachine`.
"""

from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from lamina.enforcement.driver import LocalGpu
from lamina.errors import BadInput

GROUP = "lamina.simulators"


class SimulatedMachine(NamedTuple):
    """A machine with one simulated GPU."""

    driver: Path
    """The directory of its libcuda.so.1 and libnvidia-ml.so.1."""
    gpus: tuple[LocalGpu, ...]
    environment: dict[str, str]
    """Variables by which the driver finds the machine."""


class Simulator(Protocol):
    """Makes a simulated machine of `MODEL` or `MODEL@VERSION`, a version of CUDA. Raises BadInput for unknown ones."""

    def __call__(self, model: str, folder: Path) -> SimulatedMachine: ...


def find_simulator() -> Simulator:
    """The installed simulator. Raises BadInput when there is none."""
    for entry_point in entry_points(group=GROUP):
        return cast(Simulator, entry_point.load())
    raise BadInput("--simulate needs a simulated driver; install the package lamina-lab")
