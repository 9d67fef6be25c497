"""Resizing a container while it runs.

A running container keeps the `limits` with which it started: the file that it has mounted cannot be replaced. So the
size that counts stands in its `arbiter` file too, which only the agent writes and every program maps. `limits` in the
container's directory is replaced, in one step, for those who read it there; an arbiter that attends to the container
copies it into the `arbiter` file each time that it opens the files, so the two agree again after any crash.
"""

import ctypes
import mmap
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from lamina.core.quantities import MIB
from lamina.enforcement import layout
from lamina.enforcement.container_files import open_file, reason
from lamina.enforcement.files import ARBITER, LIMITS, USAGE, write_container
from lamina.enforcement.limits import DeviceLimit, Limits, read_limits
from lamina.enforcement.usage import read_usage
from lamina.errors import NotYet, Outside


class MemoryHeld(NotYet):
    """Programs hold more memory than the new limit, or it is not known that they do not."""


def resize(record: layout.DecisionRecord, limit: DeviceLimit) -> None:
    """Write the size of one GPU into an `arbiter` file, each word in one step."""
    record.memory_bytes = limit.memory_bytes
    record.cores_percent = limit.cores_percent


def guarantee(record: layout.LendingRecord, limit: DeviceLimit) -> None:
    """Write what is guaranteed of one GPU into an `arbiter` file, where more may be lent."""
    record.request_bytes = limit.request_bytes


Ask = Callable[[str], Awaitable[int | None]]
"""Asks the driver how many bytes of the GPU with a UUID the container's processes hold; None is what it cannot say."""


async def resize_container(folder: Path, limits: Limits, ask: Ask | None) -> None:
    """Give the container these limits, which name the same GPUs, while it runs.

    Raises MemoryHeld while its programs hold more than the new limit, or may, with the old limits in force, and
    Outside. What is freed is given to others, and `usage` is the tenant's own word: so the driver is asked too. `ask`
    is None where nothing is freed.
    """
    before = read_limits(folder / LIMITS)
    await _check_held(folder, limits, ask)
    _write(folder, limits)
    try:
        await _check_held(folder, limits, ask)  # again: no program can exceed the new limit from here on
    except BaseException:
        _write(folder, before)
        raise


def _write(folder: Path, limits: Limits) -> None:
    write_container(folder, limits)
    try:
        file = open_file(folder / ARBITER, os.O_RDWR)
        try:
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


async def _check_held(folder: Path, limits: Limits, ask: Ask | None) -> None:
    usage = read_usage(folder / USAGE)
    held = {device.uuid: device.held for device in usage.devices}
    for limit in limits.devices:
        managed = usage.managed(limit.uuid) if limit.request_bytes else 0  # that may stay as borrowed memory
        _check_fits(limit, held.get(limit.uuid, 0) - managed, "it holds")
        if ask is not None:
            _check_fits(limit, await ask(limit.uuid), "by the driver's figures its processes hold")


def _check_fits(limit: DeviceLimit, held: int | None, whose: str) -> None:
    if held is None:
        raise MemoryHeld(
            f"the driver does not say how much memory of {limit.uuid} its processes hold, so nothing of it is freed; "
            "create the pod again with the smaller size"
        )
    if held > limit.guaranteed:
        raise MemoryHeld(f"{whose} {-(-held // MIB)} MiB of {limit.uuid}, more than {limit.guaranteed // MIB} MiB")
