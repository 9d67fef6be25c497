"""What each process of a container uses of a GPU by the driver's figures, by the number of its slot in `usage`. Pure.

The driver lists processes by the PIDs of the host. A slot has the PID that its process has in its own namespace, and
its start time; both are the tenant's own word. So only processes of the container's own pod are compared with them: a
wrong one gets the figure of another process of the same pod, or none.

Example: slot 3 has PID 7, started at tick 5120. Of the processes that the driver lists, host PID 90417 is in a
cgroup of the pod, has PID 7 in its own namespace and started at tick 5120. The driver says that it uses 303 MiB, and
that is written for slot 3. Slot 4 has PID 8, which the driver does not list: 0 is written, and it has to guess.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from lamina.enforcement import layout

_PID, _START = (1 << layout.PID_BITS) - 1, (1 << layout.START_BITS) - 1
_NAMESPACE_AT = layout.PID_BITS + layout.START_BITS
_NAMESPACE = (1 << layout.NS_BITS) - 1
_MAX_KIB = (1 << 32) - 1


class SlotProcess(NamedTuple):
    """Who a slot says that its process is: the PID in its own namespace, and the low bits of its start time."""

    pid: int
    start: int


def slot_process(pid: int, start: int) -> SlotProcess:
    """What the slot of a process has that started at this clock tick since boot."""
    return SlotProcess(pid & _PID, start & _START)


def slot_processes(slots: bytes, devices: int) -> Mapping[int, SlotProcess]:
    """What the first slots of a usage file say, by number. `slots` has them as the file does."""
    stride = layout.slot_stride(devices) // 8
    words = np.frombuffer(slots, np.uint64)[::stride][: layout.FIGURES]
    return {
        number: slot_process(owner, owner >> layout.PID_BITS) for number, owner in enumerate(words.tolist()) if owner
    }


def slots_of(slots: bytes, devices: int, namespace: int) -> bool:
    """Whether the first slots are all of processes with PIDs of one PID namespace, by its inode. Only there do the PIDs
    say which processes these are."""
    stride = layout.slot_stride(devices) // 8
    words = np.frombuffer(slots, np.uint64)[::stride][: layout.FIGURES].tolist()
    return all((owner >> _NAMESPACE_AT) & _NAMESPACE == namespace & _NAMESPACE for owner in words if owner)


def bytes_by_slot(
    said: Mapping[int, SlotProcess], listed: Iterable[tuple[SlotProcess, int | None]]
) -> Mapping[int, int]:
    """The bytes of each slot; 0 where they are not known.

    `listed` are the pod's processes on a GPU, with None where the driver does not say what they use. Two of them may
    look the same, in two PID namespaces; then it is not known which one has the slot.
    """
    known: dict[SlotProcess, int] = {}
    for process, used in listed:
        known[process] = 0 if process in known else used or 0
    return {number: known.get(each, 0) for number, each in said.items()}


def word(used: int, at: float) -> int:
    """A word of `arbiter`: these bytes, rounded up, when the driver was asked at `at` (s, CLOCK_MONOTONIC)."""
    return (int(at * 1000) & 0xFFFFFFFF) << 32 | min(-(-used // 1024), _MAX_KIB)
