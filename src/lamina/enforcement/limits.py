"""What a container may use, and the file that says so."""

import ctypes
import re
from pathlib import Path

from msgspec import Struct

from lamina.enforcement import layout
from lamina.errors import BadInput, Outside
from lamina.model.grants import ComputePolicy

_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
LOWEST_PRIORITY = 0xFFFFFFFF


class DeviceLimit(Struct, frozen=True, kw_only=True):
    """One GPU of a container.

    `context_bytes` is what a context is known to cost on it, 0 if nobody measured it. `physical_bytes` is the part of
    `memory_bytes` that may be memory which stays on the GPU; 0 stands for all of it. What exceeds it becomes managed
    memory, which the driver moves between GPU and host.
    """

    uuid: str
    memory_bytes: int
    cores_percent: int = 0
    compute_policy: ComputePolicy = ComputePolicy.NONE
    context_bytes: int = 0
    physical_bytes: int = 0


class Limits(Struct, frozen=True, kw_only=True):
    """All of a container's GPUs, in the order of their indices on the node."""

    devices: tuple[DeviceLimit, ...]
    priority: int = 1
    """0 is the highest."""
    log_level: int = 1
    """0 errors only, 1 and warnings, 3 and information, 4 everything."""


def check(limits: Limits) -> None:
    """Raises BadInput unless the limits can be held: no memory limit, or none at all, never means unlimited."""
    if not 1 <= len(limits.devices) <= layout.MAX_DEVICES:
        raise BadInput(f"limits name {len(limits.devices)} GPUs; allowed are 1 to {layout.MAX_DEVICES}")
    uuids = [device.uuid.lower() for device in limits.devices]
    for device in limits.devices:
        if not _UUID.fullmatch(device.uuid):
            raise BadInput(f"limits: {device.uuid!r} is not the UUID of a GPU or MIG device")
        if uuids.count(device.uuid.lower()) > 1:
            raise BadInput(f"limits name {device.uuid} twice")
        if not 0 < device.memory_bytes < 1 << 63:
            raise BadInput(f"limits: {device.memory_bytes} bytes of memory on {device.uuid}; allowed is 1 and more")
        if not 0 <= device.context_bytes < 1 << 63:
            raise BadInput(f"limits: a context of {device.context_bytes} bytes on {device.uuid}; allowed is 0 and more")
        if not 0 <= device.physical_bytes <= device.memory_bytes:
            raise BadInput(
                f"limits: {device.physical_bytes} bytes of physical memory on {device.uuid}; "
                f"allowed are 0 to {device.memory_bytes}, its memory"
            )
        lowest = 0 if device.compute_policy is ComputePolicy.NONE else 1
        if not lowest <= device.cores_percent <= 100:
            raise BadInput(f"limits: {device.cores_percent} percent of {device.uuid}; allowed are {lowest} to 100")
    if not 0 <= limits.priority <= LOWEST_PRIORITY or not 0 <= limits.log_level <= LOWEST_PRIORITY:
        raise BadInput("limits: priority and log level must not be negative")


def encode(limits: Limits) -> bytes:
    """The bytes of the limits file. Raises BadInput."""
    check(limits)
    record = layout.Limits(
        magic=layout.LIMITS_MAGIC,
        version=layout.VERSION,
        size=ctypes.sizeof(layout.Limits),
        device_count=len(limits.devices),
        log_level=limits.log_level,
        priority=limits.priority,
    )
    for slot, device in zip(record.devices, limits.devices, strict=False):
        slot.uuid = device.uuid.encode()
        slot.memory_bytes = device.memory_bytes
        slot.context_bytes = device.context_bytes
        slot.physical_bytes = device.physical_bytes or device.memory_bytes
        slot.cores_percent = device.cores_percent
        slot.compute_policy = layout.COMPUTE_POLICIES.index(device.compute_policy.value)
    record.checksum = layout.checksum(bytes(record))
    return bytes(record)


def decode(data: bytes) -> Limits:
    """The limits in a file's bytes. Raises BadInput for a file that programs would refuse too."""
    if len(data) != ctypes.sizeof(layout.Limits):
        raise BadInput(f"a limits file has {ctypes.sizeof(layout.Limits)} bytes, this one {len(data)}")
    record = layout.Limits.from_buffer_copy(data)
    if record.magic != layout.LIMITS_MAGIC or record.version != layout.VERSION:
        raise BadInput("the file is not a limits file of this version")
    if record.checksum != layout.checksum(data):
        raise BadInput("the limits file is damaged")
    limits = Limits(
        devices=tuple(_device(record.devices[i]) for i in range(min(record.device_count, layout.MAX_DEVICES))),
        priority=record.priority,
        log_level=record.log_level,
    )
    check(limits)
    return limits


def _device(record: layout.Limit) -> DeviceLimit:
    if record.compute_policy >= len(layout.COMPUTE_POLICIES):
        raise BadInput(f"the limits file has the unknown compute policy {record.compute_policy}")
    return DeviceLimit(
        uuid=record.uuid.decode("ascii", "replace"),
        memory_bytes=record.memory_bytes,
        cores_percent=record.cores_percent,
        compute_policy=ComputePolicy(layout.COMPUTE_POLICIES[record.compute_policy]),
        context_bytes=record.context_bytes,
        physical_bytes=0 if record.physical_bytes == record.memory_bytes else record.physical_bytes,
    )


def read_limits(path: Path) -> Limits:
    """The limits in a file. Raises Outside when it cannot be read, BadInput when it is not sound."""
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise Outside(f"cannot read {path}: {error.strerror}") from error
