"""The simulated machine of `lamina run --simulate` and `lamina verify --simulate`.

Runs at the same time that simulate the same machine have it in common, as they would have a real one: the machine is a
file, and each of their folders has a link to it.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lamina.enforcement.driver import LocalGpu, SimulatedMachine
from lamina.errors import BadInput
from lamina_lab.simgpu import state
from lamina_lab.simgpu.description import GpuSpec, Machine, check, place
from lamina_lab.simgpu.drivers import FIRST_DRIVERS, simulated
from lamina_lab.simgpu.machine_file import describes, driver_folder, library, write

_FILE = "machine"


def simulate(model: str, folder: Path, others: Callable[[], Iterable[Path]] = tuple) -> SimulatedMachine:
    """A machine with GPUs of that model, or the same one that another folder has; its file is in the directory.

    The driver is a current one, or that of the CUDA version in `MODEL@VERSION`. Raises BadInput for an unknown model or
    version.
    """
    count, name, cuda = simulated(model)
    machine = Machine(gpus=(GpuSpec(model=name, count=count),), cuda=cuda, driver=FIRST_DRIVERS[cuda], seed=str(folder))
    check(machine)
    with _one_at_a_time():
        if not any(_linked(other / _FILE, folder / _FILE, machine) for other in others() if other != folder):
            write(machine, folder / _FILE)
    found = zip(place(machine), state.read(folder / _FILE).gpus, strict=True)
    gpus = tuple(LocalGpu(gpu.index, each.uuid, gpu.card.name, gpu.card.memory_mib) for gpu, each in found)
    return SimulatedMachine(driver_folder(), gpus, {"SIMGPU_MACHINE": str(folder / _FILE)})


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two that begin at once would make two machines."""
    with library("libcuda.so.1").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _linked(theirs: Path, ours: Path, machine: Machine) -> bool:
    try:
        if not describes(theirs, machine):
            return False
        os.link(theirs, ours)
    except (OSError, BadInput):
        return False  # it ends now
    return True
