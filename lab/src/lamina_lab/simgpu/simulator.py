"""The simulated machine of `lamina run --simulate` and `lamina verify --simulate`."""

from pathlib import Path

from lamina.enforcement.driver import LocalGpu, SimulatedMachine
from lamina_lab.simgpu.description import GpuSpec, Machine, place
from lamina_lab.simgpu.drivers import FIRST_DRIVERS, model_and_cuda
from lamina_lab.simgpu.machine_file import driver_folder, write


def simulate(model: str, folder: Path) -> SimulatedMachine:
    """A machine with one GPU of that model; its file is in the directory.

    The driver is a current one, or that of the CUDA version in `MODEL@VERSION`. Raises BadInput for an unknown model or
    version.
    """
    name, cuda = model_and_cuda(model)
    machine = Machine(gpus=(GpuSpec(model=name),), cuda=cuda, driver=FIRST_DRIVERS[cuda], seed=str(folder))
    write(machine, folder / "machine")
    gpus = tuple(LocalGpu(gpu.index, gpu.uuid, gpu.card.name, gpu.card.memory_mib) for gpu in place(machine))
    return SimulatedMachine(driver_folder(), gpus, {"SIMGPU_MACHINE": str(folder / "machine")})
