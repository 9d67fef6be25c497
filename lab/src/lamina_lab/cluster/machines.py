"""The machines of a running lab's nodes, as an administrator reaches them: programs on them, faults of their GPUs."""

import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from lamina.errors import BadInput
from lamina_lab import simgpu
from lamina_lab.cluster.commands import on_machine
from lamina_lab.cluster.plan import LabPlan
from lamina_lab.host import status
from lamina_lab.host.directory import LabDirectory, NodeDirectory, lab_directory


class Target(NamedTuple):
    """One GPU of one node of a lab."""

    disk: NodeDirectory
    uuid: str

    def report(self, xid: int) -> None:
        """Make the driver report an error of the GPU."""
        simgpu.inject_xid(self.disk.machine, self.uuid, xid)

    def lose(self) -> None:
        """Remove the GPU from the bus."""
        simgpu.set_lost(self.disk.machine, self.uuid, True)

    def restore(self) -> None:
        """Put the GPU back on the bus."""
        simgpu.set_lost(self.disk.machine, self.uuid, False)


def target(lab: str, node: str, gpu: str) -> Target:
    """The GPU of a running lab, by index or UUID. Raises BadInput, which lists the nodes or GPUs that exist."""
    disk = _node_of(running(lab), node)
    uuids = [gpu_state.uuid for gpu_state in simgpu.read(disk.machine).gpus]
    chosen = next((uuid for index, uuid in enumerate(uuids) if gpu in (str(index), uuid)), None)
    if chosen is None:
        known = ", ".join(f"{index} ({uuid})" for index, uuid in enumerate(uuids)) or "none"
        raise BadInput(f"node {node} has no GPU {gpu}; its GPUs are: {known}")
    return Target(disk, chosen)


def execute(lab: str, node: str, command: Sequence[str]) -> int:
    """Run a program on a node, outside of containers, where it sees all GPUs. Return its exit code.

    Raises BadInput for a node or a program that is not there.
    """
    directory = running(lab)
    environment = on_machine(directory, _node_of(directory, node))
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise BadInput(f"node {node} has no program {command[0]}")
    return subprocess.run([program, *command[1:]], env=environment, check=False).returncode


def running(lab: str) -> LabDirectory:
    """The directory of a lab that runs. Raises BadInput for any other."""
    directory = lab_directory(lab)
    if not status.is_running(directory):
        raise BadInput(f"lab {lab} is not running; start it with `lamina lab up`")
    return directory


def _node_of(directory: LabDirectory, node: str) -> NodeDirectory:
    plan = msgspec.json.decode(directory.plan.read_bytes(), type=LabPlan)
    names = [node_plan.name for node_plan in plan.nodes]
    if node not in names:
        raise BadInput(f"lab {directory.name} has no node {node}; its nodes are: {', '.join(names)}")
    return directory.node(names.index(node))
