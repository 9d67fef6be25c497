"""Simulated machines: libraries that behave like NVIDIA's driver, over one memory-mapped file per machine.

    machine = parse(Path("machine.yaml").read_text())    what the machine is
    write(machine, Path("/tmp/m"))                        the machine file
    environment(Path("/tmp/m"))                           what a process of that machine needs
    read(Path("/tmp/m"))                                  what goes on in it

All processes of one machine must see each other in one PID namespace, because liveness is asked of /proc.
"""

from lamina.simgpu.description import GpuSpec, Machine, parse
from lamina.simgpu.machine_file import environment, write
from lamina.simgpu.state import GpuState, InstanceState, MachineState, ProcessState, inject_xid, read, set_lost

__all__ = [
    "GpuSpec", "GpuState", "InstanceState", "Machine", "MachineState", "ProcessState", "environment", "inject_xid",
    "parse", "read", "set_lost", "write",
]  # fmt: skip
