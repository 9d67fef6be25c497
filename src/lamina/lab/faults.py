"""Faults of a lab's simulated GPUs, as hardware and driver bring them about."""

from typing import NamedTuple

import msgspec

from lamina import simgpu
from lamina.errors import BadInput
from lamina.lab import status
from lamina.lab.directory import NodeDirectory, lab_directory
from lamina.lab.plan import Plan


class Target(NamedTuple):
    """One GPU of one node of a lab."""

    disk: NodeDirectory
    uuid: str

    def report(self, xid: int) -> None:
        """Let the driver report an error of the GPU."""
        simgpu.inject_xid(self.disk.machine, self.uuid, xid)

    def lose(self) -> None:
        """Let the GPU fall off the bus."""
        simgpu.set_lost(self.disk.machine, self.uuid, True)

    def restore(self) -> None:
        """Bring it back."""
        simgpu.set_lost(self.disk.machine, self.uuid, False)


def target(lab: str, node: str, gpu: str) -> Target:
    """The GPU of a running lab, by index or UUID. Raises BadInput that names what there is."""
    directory = lab_directory(lab)
    if not status.is_running(directory):
        raise BadInput(f"no lab {lab} is running; `lamina lab up` starts one")
    plan = msgspec.json.decode(directory.plan.read_bytes(), type=Plan)
    names = [each.name for each in plan.nodes]
    if node not in names:
        raise BadInput(f"lab {lab} has no node {node}; there are {', '.join(names)}")
    disk = directory.node(names.index(node))
    uuids = [each.uuid for each in simgpu.read(disk.machine).gpus]
    found = [uuid for index, uuid in enumerate(uuids) if gpu in (str(index), uuid)]
    if not found:
        raise BadInput(f"node {node} has no GPU {gpu}; there are 0 to {len(uuids) - 1}: {', '.join(uuids)}")
    return Target(disk, found[0])
