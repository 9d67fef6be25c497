"""Resizing a container while it runs.

A running container keeps the `limits` with which it started: the file that it has mounted cannot be replaced. So the
size that counts stands in its `arbiter` file too, which only the agent writes and every program maps. `limits` in the
container's directory is replaced, in one step, for those who read it there; an arbiter that attends to the container
copies it into the `arbiter` file each time that it opens the files, so the two agree again after any crash.
"""

import ctypes
import mmap
import os
from pathlib import Path

from lamina.enforcement import layout
from lamina.enforcement.container_files import open_file, reason
from lamina.enforcement.files import ARBITER, LIMITS, USAGE, write_container
from lamina.enforcement.limits import DeviceLimit, Limits, read_limits
from lamina.enforcement.usage import read_usage
from lamina.errors import NotYet, Outside
from lamina.model.quantities import MIB


class MemoryHeld(NotYet):
    """Programs hold more memory than the new limit."""


def resize(record: layout.DecisionRecord, limit: DeviceLimit) -> None:
    """Write the size of one GPU into an `arbiter` file, each word in one step."""
    record.memory_bytes = limit.memory_bytes
    record.cores_percent = limit.cores_percent


def guarantee(record: layout.LendingRecord, limit: DeviceLimit) -> None:
    """Write what is guaranteed of one GPU into an `arbiter` file, where more may be lent."""
    record.request_bytes = limit.request_bytes


def resize_container(folder: Path, limits: Limits) -> None:
    """Give the container these limits, which name the same GPUs, while it runs.

    Raises MemoryHeld while its programs hold more than the new limit, with the old limits in force, and Outside.
    """
    before = read_limits(folder / LIMITS)
    _check_held(folder, limits)
    _write(folder, limits)
    try:
        _check_held(folder, limits)  # again: no program can exceed the new limit from here on
    except MemoryHeld:
        _write(folder, before)
        raise


def _write(folder: Path, limits: Limits) -> None:
    write_container(folder, limits)
    try:
        file = open_file(folder / ARBITER, os.O_RDWR)
        try:
            os.posix_fallocate(file, 0, ctypes.sizeof(layout.ArbiterFile))  # an earlier version made it shorter
            with mmap.mmap(file, ctypes.sizeof(layout.ArbiterFile)) as mapped:
                arbiter = layout.ArbiterFile.from_buffer(mapped)
                for place, limit in enumerate(limits.devices):
                    resize(arbiter.devices[place], limit)
                    guarantee(arbiter.lendings[place], limit)
                del arbiter
        finally:
            os.close(file)
    except OSError as error:
        raise Outside(f"cannot resize the container of {folder}: {reason(error)}") from error


def _check_held(folder: Path, limits: Limits) -> None:
    usage = read_usage(folder / USAGE)
    held = {device.uuid: device.held for device in usage.devices}
    for limit in limits.devices:
        if limit.request_bytes:  # what is managed memory already may stay as borrowed memory
            held[limit.uuid] = held.get(limit.uuid, 0) - usage.managed(limit.uuid)
        if held.get(limit.uuid, 0) > limit.guaranteed:
            raise MemoryHeld(
                f"it holds {-(-held[limit.uuid] // MIB)} MiB of {limit.uuid}, more than {limit.guaranteed // MIB} MiB"
            )
