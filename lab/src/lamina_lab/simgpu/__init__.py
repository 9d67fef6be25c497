"""Simulated machines: libraries that behave like NVIDIA's driver, on one memory-mapped file per machine.

    machine = parse(Path("machine.yaml").read_text())    what the machine is
    write(machine, Path("/tmp/m"))                        the machine file
    environment(Path("/tmp/m"))                           what a process on that machine needs
    read(Path("/tmp/m"))                                  its current state

All processes of one machine must be in one PID namespace, because /proc tells which of them are alive.
"""

from lamina_lab.simgpu.description import GpuSpec, Machine, parse
from lamina_lab.simgpu.machine_file import driver_folder, environment, library, write
from lamina_lab.simgpu.state import InstanceState, MachineState, ProcessState, SimulatedGpu, inject_xid, read, set_lost

__all__ = [
    "GpuSpec",
    "InstanceState",
    "Machine",
    "MachineState",
    "ProcessState",
    "SimulatedGpu",
    "driver_folder",
    "environment",
    "inject_xid",
    "library",
    "parse",
    "read",
    "set_lost",
    "write",
]  # fmt: skip
